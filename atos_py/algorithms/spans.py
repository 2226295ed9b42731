"""Passes over all vertices, of which an item is a span."""

from __future__ import annotations

__all__ = ["SPAN", "span_of"]

SPAN = 4096  # vertices


def span_of(worker, span, n):  # type: ignore[no-untyped-def]
    """Return this thread's vertices of a span."""
    return worker.split(range(span * SPAN, min(span * SPAN + SPAN, n)))
