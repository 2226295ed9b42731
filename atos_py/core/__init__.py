"""The compiled core and its devices: the one place that knows the C interface."""
