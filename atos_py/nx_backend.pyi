"""Public path of `atos_py.models.nx_backend`; `support/moved_modules.py` has Python find it."""

from .models.nx_backend import *
