"""Public path of `atos_py.models.linalg`; `support/moved_modules.py` has Python find it."""

from .models.linalg import *
