"""Weights on disk: where they lie, where they come from, and that they are the ones that were pinned."""
