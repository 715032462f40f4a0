"""The paper's table 3 in miniature, on Multi30k."""

from course_lib.experiments.table3 import table_on

GRID = table_on("multi30k", "table3_multi30k")
