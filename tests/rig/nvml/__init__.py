"""A stand-in for NVIDIA's driver library and nvidia-smi, so that the real nvidia-ml-py runs without a GPU."""

from __future__ import annotations

from tests.rig.nvml.build import build, install, install_smi, missing
from tests.rig.nvml.control import NvmlControl

__all__ = ["NvmlControl", "build", "install", "install_smi", "missing"]
