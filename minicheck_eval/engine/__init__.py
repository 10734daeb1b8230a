"""The engine: many prompts become few forward passes, and each shared token is computed once."""
