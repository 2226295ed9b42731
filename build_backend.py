"""What pip calls to build: setuptools, which is given nvcc from PyPI where this machine has none.

``ATOS_CPU_ONLY=1 pip install .`` builds for the CPU alone, without any nvcc; ``CUDA_HOME=none pip install .`` with that of PyPI
in any case.
"""

import os
import runpy
import warnings
from pathlib import Path
from typing import Any

from setuptools.build_meta import *  # noqa: F403 (every hook that is not replaced below)

# A note in a box that reads like a failure, though an editable package has to come first in imports.
warnings.filterwarnings("ignore", "Editable installation")

_TOOLKIT = Path(__file__).parent / "atos_py" / "tools" / "cuda_toolkit.py"


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    toolkit = runpy.run_path(str(_TOOLKIT))
    wheels = os.environ.get("NVCC_WHEELS", toolkit["NVCC_WHEELS"])
    return [wheels] if wheels and not toolkit["cpu_only"]() and not toolkit["find_cuda"]() else []


get_requires_for_build_editable = get_requires_for_build_wheel
