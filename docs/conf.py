"""The documentation site. `make docs` builds it, with every warning an error."""

import sys
import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
ABOUT = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]

project = ABOUT["name"]
author = "the tessella authors"
source_url = ABOUT.get("urls", {}).get("Source", "https://github.com/tessella-flows/tessella")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # so that pages need no network
    "extensions.docstrings",
    "extensions.links",
]
exclude_patterns = ["_build", "extensions"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3  # pages link to #headings, as on GitHub

autodoc_default_options = {"members": True, "member-order": "bysource", "no-value": True}
napoleon_use_ivar = True  # attributes as a list; properties have entries of their own
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 100
toc_object_entries_show_parents = "hide"
add_module_names = False

html_theme = "furo"
html_title = "tessella"
html_theme_options = {"source_repository": f"{source_url}/", "source_branch": "main", "source_directory": "docs/"}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
