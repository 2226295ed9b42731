"""Public path of `atos_py.models.acc`: graph algorithms in the model of SIMD-X."""

from ..models.acc import *  # noqa: F403
from ..models.acc import __all__  # noqa: F401
