"""Public path of `atos_py.models.learning.features`; `support/moved_modules.py` has Python find it."""

from .models.learning.features import *
