"""How Sphinx makes the book; `make book` lays out its sources first, see notebooks/source/book.py."""

import os
from pathlib import Path

from sphinx.application import Sphinx

from notebooks.source.book_pages import finish
from notebooks.source.book_reference import as_rst, own_signature, skip_foreign

project = "The Transformer, built by hand"
author = "The course authors"
copyright = author
version = release = ""

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_static", "alive"]
nitpicky = True
nitpick_ignore_regex = [("py:class", ".*")]  # signatures name classes of torch and private ones, which have no page
default_role = "literal"

# Lessons show what is stored; nothing runs here.
nb_execution_mode = "off"
nb_merge_streams = True
nb_ipywidgets_js = {}
nb_code_prompt_hide = "Fold"
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_heading_slug_func = "notebooks.source.book.slug"
mathjax_path = "mathjax/tex-chtml.js"
mathjax3_config = {"options": {"enableMenu": False}}

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
toc_object_entries_show_parents = "hide"
python_display_short_literal_types = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["alive/widgets.css", "course.css"]
html_js_files = [("alive/start.js", {"defer": "defer"})]
html_copy_source = False
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_theme_options = {
    "use_download_button": False,
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "navbar_persistent": [],
}
if "GITHUB_REPOSITORY" in os.environ:  # where it is published from
    html_theme_options["repository_url"] = f"https://github.com/{os.environ['GITHUB_REPOSITORY']}"
    html_theme_options["use_repository_button"] = True


def lighten(app: Sphinx, error: Exception | None) -> None:
    """Takes out what no reader's browser asks for: maps of the theme's scripts, and its templates; sizes pictures."""
    static = Path(app.outdir) / "_static"
    for path in () if error else (*static.rglob("*.map"), *static.glob("webpack-macros.html")):
        path.unlink()
    if not error:
        finish(Path(app.outdir))


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", as_rst, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", own_signature)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("build-finished", lighten, priority=900)
