"""How the documentation site is built: `make docs` runs Sphinx on this folder, and every warning is an error."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.insert(0, str(_HERE))

project = "ShuffleDP"
author = "The ShuffleDP authors"
project_copyright = "The ShuffleDP authors, Apache-2.0"
language = "en"
# Two hyphens begin an option, and are no dash.
smartquotes = False

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "builder.generated",
    "builder.docstrings",
]
# The folder's own README is for whoever reads it in a repository's browser.
exclude_patterns = ["README.md", "builder", "pictures/*.py", "gallery/*.py"]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
# A page's sections are named by its headings; a page that begins with another level is the included file's own.
suppress_warnings = ["myst.strikethrough"]
# In theory `$` begins a formula; in commands it is the shell's, and stands in blocks of code.
myst_dmath_allow_space = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True, "undoc-members": False}
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
# Every public name has a heading of its own; members of classes would make every page's list of contents a book.
toc_object_entries = False
# Docstrings quote names by single backticks: they are links where the name is documented, and code elsewhere.
default_role = "py:obj"

html_theme = "furo"
html_title = "ShuffleDP"
html_static_path = ["builder/static"]
html_favicon = "../src/shuffledp/dashboard/static/icon.svg"
html_css_files = ["site.css"]
html_js_files = [("scrolling.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_baseurl = ""
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5fa8",
        "color-brand-content": "#1f5fa8",
        "color-brand-visited": "#6b3fa0",
        "color-api-name": "#8a2a12",
        "color-api-pre-name": "#8a2a12",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab8f5",
        "color-brand-content": "#8ab8f5",
        "color-brand-visited": "#c3a6f0",
        "color-api-name": "#f0a58a",
        "color-api-pre-name": "#f0a58a",
    },
    "footer_icons": [],
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

# MathJax and its fonts are copied into the site from what npm installed (`builder/shipped.py`).
mathjax_path = "mathjax/tex-chtml.js"
mathjax4_config = {
    "loader": {"load": ["a11y/assistive-mml"], "paths": {"fonts": "[mathjax]/fonts"}},
    "options": {
        "enableEnrichment": False,
        "enableSpeech": False,
        "enableBraille": False,
        "enableExplorer": False,
        "menuOptions": {"settings": {"enrich": False, "speech": False, "braille": False, "assistiveMml": True}},
    },
    # Letters of formulas as large as the text's are elsewhere, so that lines with formulas stand no further apart.
    "output": {"displayOverflow": "overflow", "matchFontHeight": False, "scale": 1.14},
}
