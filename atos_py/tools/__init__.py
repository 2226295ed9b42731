"""Tuning, measuring and diagnosing; nothing below imports it."""
