"""Changes of Numba's core that both targets take, made once."""

from __future__ import annotations

import functools

from numba.core import byteflow, callconv, inline_closurecall, lowering, targetconfig, untyped_passes

from .inner_functions import follow_python
from .lower_checks import intercept_divisions, is_user_code
from .numba_patches import patch_backbone, patch_lowering, patch_options
from .unassigned import check_assigned


@functools.cache
def follow_core() -> None:
    """Make the changes, the first time."""
    patch_lowering(lowering.BaseLower)
    intercept_divisions(callconv.ErrorModel)
    follow_python(inline_closurecall)
    check_assigned(untyped_passes)
    patch_backbone(byteflow, is_user_code)
    patch_options(targetconfig.TargetConfig)
