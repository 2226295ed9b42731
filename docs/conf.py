"""Sphinx's settings: pages in MyST, the API from docstrings, a gallery that runs `examples/`. Built by ``make docs``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
sys.path.append(str(ROOT / "tests"))
os.environ.setdefault("ATOS_DEVICE", "cpu")  # the gallery's outputs are those of any machine
os.environ.setdefault("MPLBACKEND", "agg")

from soak.table import with_sums  # noqa: E402

import atos_py  # noqa: E402

project = "atos_py"
author = "the atos_py authors"
project_copyright = author
version = release = atos_py.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["**sg_execution_times.rst"]
default_role = "code"  # what docstrings have in single backticks

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "DTypeLike": "DTypeLike", "NDArray": "NDArray"}
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # otherwise "a, b : int" is taken for one attribute
napoleon_use_rtype = False

copybutton_exclude = ".linenos, .gp, .go"  # no prompts and no output

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib", "shown_figures"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "min_reported_time": 1e9,
}

html_theme = "furo"
html_title = f"atos_py {version}"
html_static_path = ["_static"]
html_css_files = ["atos.css"]
html_show_sphinx = False


def _orphan(_app: Sphinx, name: str, text: list[str]) -> None:
    """Let the papers' tables stand outside of the table of contents: two pages of their folder link to each."""
    if name.startswith("papers/") and name not in ("papers/README", "papers/atos-on-h100"):
        text[0] = f"---\norphan: true\n---\n{text[0]}"


def _soak(_app: Sphinx, _name: str, text: list[str]) -> None:
    """Put the sums of `tests/soak.csv` where a page has the mark for them."""
    text[0] = with_sums(text[0])


def _keep_colon(_app: Sphinx, what: str, _name: str, _obj: object, _options: Any, lines: list[str]) -> None:
    """Put an empty comment before a property's text, of which napoleon takes what stands before a colon for the type."""
    if what == "property":
        lines[:0] = ["..", ""]


def _aliases(
    _app: Sphinx, _what: str, _name: str, _obj: object, _options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Show the aliases of NumPy's types by their names, in unions too."""
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns))  # type: ignore[return-value]


class _InlineDrawings(SphinxPostTransform):
    """Put the drawings of _static/diagrams into the page, where they take the colors of its theme."""

    default_priority = 5  # before images are resolved
    formats = ("html",)

    def run(self, **_kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            path = ROOT / "docs" / image["uri"]
            if path.parent.name == "diagrams":
                image.replace_self(nodes.raw("", f'<span class="drawing">{path.read_text()}</span>', format="html"))


def setup(app: Sphinx) -> None:
    """Connect what is above."""
    app.add_post_transform(_InlineDrawings)
    app.connect("source-read", _orphan)
    app.connect("source-read", _soak)
    app.connect("autodoc-process-docstring", _keep_colon, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", _aliases)
