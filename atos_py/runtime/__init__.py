"""One queue and its launches: configuration, statistics, errors, checkpoints."""
