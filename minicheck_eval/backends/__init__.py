"""What runs a model: each backend is one implementation of the scoring seam."""
