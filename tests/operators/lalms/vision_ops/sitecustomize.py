"""Lets torchvision's wheel load beside a CPU torch: its two operators that are always described are declared, without kernels.

The wheel on PyPI is built for CUDA, so its compiled part does not load; nothing that hears sound calls it. Python imports
this file by itself in processes whose PYTHONPATH names this folder (those of vLLM's engine).
"""

import torch

if torch.version.cuda is None:
    _LIBRARY = torch.library.Library("torchvision", "DEF")
    _LIBRARY.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _LIBRARY.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
