"""The site: `make site` builds it from the Markdown that lies in the repository and from the docstrings.

The source folder is the repository's root, so a page of the site is a file as it stands: nothing is copied, and links
between files lead to the same places as on GitHub. `site_pages.py` has what Sphinx cannot know by itself.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from sphinx.application import Sphinx

import hf_mech

sys.path.insert(0, str(Path(__file__).parent))

import site_pages

project = "hf_mech"
author = "the hf_mech authors"
copyright = "the hf_mech authors, Apache-2.0"
version = release = hf_mech.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
root_doc = "docs/index"
templates_path = [str(Path(__file__).parent / "_templates")]  # two parts of Sphinx take it relative to two folders
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "docs/**.md",
    "docs/api/generated/*.rst",
    "hf_mech/**/README.md",
    "model_cards/README.md",
    "model_cards/*/README.md",
]
exclude_patterns = [".*", "build", "dist", "runs", "demo", "hf_mech/cli/explorer/space_files", "**/__pycache__"]
suppress_warnings = [
    "ref.python",  # code in a text that several objects are called by stays code
]

# Markdown
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 6
html_math_renderer = "mathml"

# Notebooks
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_cache_path = str(Path(__file__).parents[1] / "build" / "notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_output_stderr = "remove"  # bars of progress

# Docstrings
autosummary_context = {"namesakes": site_pages.NAMESAKES}
default_role = "code"
autosummary_ignore_module_all = False
autodoc_mock_imports = ["transformer_lens"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_inherit_docstrings = False
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"

# Pages
html_theme = "furo"
html_title = "hf_mech"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_additional_pages = {"index": "to_start.html"}
html_theme_options = {"top_of_page_buttons": []}
html_context = {"repository": os.environ.get("SITE_REPOSITORY", "")}


def setup(app: Sphinx) -> None:
    """Adds the project's own steps."""
    site_pages.setup(app)
