"""Public path of `atos_py.models.acc`; `support/moved_modules.py` has Python find it."""

from .models.acc import *
