"""Stages, metrics, models and benchmarks. Importing it needs neither ray nor torch."""
