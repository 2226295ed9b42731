"""Tuning, measuring, reproducing and diagnosing; nothing below imports it."""
