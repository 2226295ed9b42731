"""Graphs whose edges change, and results that follow them."""
