"""Entry points: each file is one run, read from top to bottom."""
