"""The teacher's side of the assignments, on nbgrader: submissions run contained and are judged from outside.

    intake (readable?) -> rebuild (on the released notebook) -> execute (contained) -> nbgrader's gradebook

Needs the extra `instructor`. `python -m course_lib.grading --help` lists what a teacher does with it.
"""
