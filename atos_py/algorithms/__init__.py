"""Ready-made algorithms: each package has the idea, the task functions, a driver and a verifier."""
