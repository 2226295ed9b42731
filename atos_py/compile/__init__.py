"""Compiler of tasks: a Python function and the types of its arguments in, a loaded program out."""
