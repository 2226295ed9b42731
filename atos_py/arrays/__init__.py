"""Memory on a device, and the arrays of other libraries, in and out."""
