"""Models that metrics and the cascade share: a frozen config each, whose `load()` returns the working
object."""
