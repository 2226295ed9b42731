"""What pip calls to build: setuptools, which is given nvcc from PyPI where this machine has none.

``CUDA_HOME=none pip install .`` builds with PyPI's nvcc in any case; ``CUDA_HOME=none NVCC_WHEELS= pip install .`` with none at
all, for the CPU alone.
"""

import os
import runpy
from pathlib import Path
from typing import Any

from setuptools.build_meta import *  # noqa: F403 (every hook that is not replaced below)

_TOOLKIT = Path(__file__).parent / "atos_py" / "toolkit.py"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    toolkit = runpy.run_path(str(_TOOLKIT))
    wheels = os.environ.get("NVCC_WHEELS", toolkit["NVCC_WHEELS"])
    return [wheels] if wheels and not toolkit["find_cuda"]() else []


get_requires_for_build_editable = get_requires_for_build_wheel
