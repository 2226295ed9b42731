"""Public path of `atos_py.models.nx_backend`, by which networkx finds its backend "atos"."""

from ..models.nx_backend import *  # noqa: F403
from ..models.nx_backend import __all__  # noqa: F401
