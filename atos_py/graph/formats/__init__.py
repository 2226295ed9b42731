"""Graph files, one module for each format, on top of what text files have in common."""
