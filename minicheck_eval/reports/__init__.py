"""Reports: a run as a person reads it."""
