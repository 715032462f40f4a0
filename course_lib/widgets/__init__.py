"""Interactive views for JupyterLab and its relatives; what they show is computed by the library."""

from course_lib.widgets.explorer import AttentionExplorer

__all__ = ["AttentionExplorer"]
