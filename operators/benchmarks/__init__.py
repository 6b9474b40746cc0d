"""Benchmarks: `load()` gives items in the ITEM schema, `yardsticks()` the responses that ship with them."""
