"""Public path of `atos_py.models.learning.features`: maps of functions of vectors of numbers on vertices and edges."""

from ..models.learning.features import *  # noqa: F403
from ..models.learning.features import __all__  # noqa: F401
