"""What one process takes, without its children (Ray's, mostly): processor seconds and peak memory, as the kernel counts them.

Not what `wait4` says: the peak of a process there is at least that of the one which started it.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Used(NamedTuple):
    """What a process used, and its exit status."""

    status: int
    cpu_seconds: float
    peak_mb: float


def watched(command: Sequence[str], **options: Any) -> Used:
    """Run `command` (`options` as subprocess.Popen takes them) to its end."""
    process, used = subprocess.Popen(command, **options), (0.0, 0.0)
    while process.poll() is None:
        used = _so_far(process.pid) or used
        time.sleep(0.05)
    return Used(process.returncode, *used)


def _so_far(process: int) -> tuple[float, float] | None:
    """None once it has ended."""
    folder = Path("/proc", str(process))
    try:
        ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
        (peak,) = re.findall(r"VmHWM:\s+(\d+)", (folder / "status").read_text())
    except (OSError, ValueError):
        return None
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(peak) / 2**10
