"""Scraper of sphinx-gallery: a figure that is the value of a cell, as of `stats.plot()`, goes on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sphinx_gallery.scrapers import figure_rst

from atos_py.runtime.plot import ShownFigure


def _get_sg_image_scraper() -> Callable[..., str]:
    """Return the scraper of this module, whose name `image_scrapers` has in conf.py."""
    return scrape


def scrape(_block: Any, variables: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Return the reST of the figure that the last cell ended with; nothing if it ended with something else."""
    names = variables["example_globals"]
    figure = names.get("___")  # the value of the last cell that had one
    if not isinstance(figure, ShownFigure):
        return ""
    path = next(variables["image_path_iterator"])
    figure.savefig(path)
    names["___"] = None  # no text of the figure beside it
    return str(figure_rst([path], gallery_conf["src_dir"]))
