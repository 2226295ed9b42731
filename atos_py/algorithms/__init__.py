"""Ready-made algorithms: each module has the idea, the task functions, a driver and a verifier."""
