"""The packages for images, which lie beside an environment: for checkpoints that see as well as hear.

`make` puts them there, for the tests. In vLLM's environment importing this puts them on the path, here and in the processes
that vLLM starts: import it before anything that looks for torchvision. Elsewhere only a process that is told finds them.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

FOLDERS = [str(Path(__file__).with_name("vision_ops")), str(Path(sys.prefix) / "vision")]
HAS_VISION = Path(FOLDERS[1]).is_dir()


def with_vision(environment: dict[str, str]) -> dict[str, str]:
    """`environment` for a process that finds them."""
    path = [*FOLDERS, environment.get("PYTHONPATH")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, path))}


# In a process that was told, Python has done this already.
if HAS_VISION and find_spec("vllm") is not None and FOLDERS[0] not in os.environ.get("PYTHONPATH", ""):
    sys.path += FOLDERS
    os.environ.update(with_vision(dict(os.environ)))
    from tests.operators.lalms.vision_ops import sitecustomize  # noqa: F401
