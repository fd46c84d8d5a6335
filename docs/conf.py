"""Settings of the documentation site; ``make docs`` builds it into ``build/docs``.

The source folder is the project's: the READMEs beside the code are pages where they lie, so that
their links hold on the site, too.
"""

import sys
from itertools import groupby
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import nasbo  # noqa: E402

project = "nasbo"
author = "The nasbo authors"
copyright = "the nasbo authors; Apache-2.0"  # noqa: A001
version = release = nasbo.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "cluster/**.md",
    "search_spaces/README.md",
    "nasbo/methods/README.md",
    "nasbo/bench/published/*.md",
    "CHANGELOG.md",
]
exclude_patterns = ["build", "dist", "runs", "tests", ".*", "docs/_*"]
source_suffix = {".md": "markdown"}

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline", "colon_fence"]
smartquotes = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"nasbo {release}"
html_static_path = ["_static"]
html_extra_path = ["_root"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def keep_examples(app, context, lines):
    """Show the examples of a command's help as code."""
    text = []
    for is_example, group in groupby(lines, lambda line: line.startswith("| ")):
        found = list(group)
        text += ["::", "", *(f"   {line[2:]}" for line in found), ""] if is_example else found
    lines[:] = text


def print_dashes(app, tree):
    """Put a dash between a parameter and its words, where quotes and options stay as typed."""
    for text in list(tree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def setup(app):
    """Take part in the build."""
    app.connect("sphinx-click-process-description", keep_examples)
    app.connect("doctree-read", print_dashes)
