"""Helpers that know nothing of devices or tasks: argument checks, atomic file writes, the disk cache."""
