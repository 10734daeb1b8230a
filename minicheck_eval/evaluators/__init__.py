"""Evaluators: what is asked about a request, and how the answers become a verdict."""
