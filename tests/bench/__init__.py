"""Throughput of the metrics against a plain loop and against their models alone. Nothing asserts a time."""
