"""Puts the torchvision that lies beside vLLM's environment on the path, here and in the processes that vLLM starts.

Import it before anything that looks for torchvision. `HAS_VISION`: whether there is one (`make test-vllm` puts it there).
"""

import os
import sys
from pathlib import Path

FOLDERS = [str(Path(__file__).with_name("vision_ops")), str(Path(sys.prefix) / "vision")]
HAS_VISION = Path(FOLDERS[1]).is_dir()

if HAS_VISION and FOLDERS[0] not in os.environ.get(
    "PYTHONPATH", ""
):  # where it is, Python has done this already
    sys.path += FOLDERS
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*FOLDERS, os.environ.get("PYTHONPATH")]))
    from tests.operators.lalms.vision_ops import sitecustomize  # noqa: F401
