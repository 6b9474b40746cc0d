"""Entry points: each file is one run, read from top to bottom."""

import os

# Memory that Arrow has freed goes back to the system: its own allocators keep some of it, the more the longer a run is.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
