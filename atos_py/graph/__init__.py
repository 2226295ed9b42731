"""Graphs in CSR form: built, checked, read, written, generated."""
