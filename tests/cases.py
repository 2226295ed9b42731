"""Number of cases of randomized and exhaustive tests: a few, or with ATOS_TEST_CASES=1200, as in `make test-all`, more.

On GPUs, combinations of parameters: every two values, or with ATOS_TEST_COMBINATIONS=all, as in `make gpu-test-all`, all.
"""

from __future__ import annotations

import os

CASES = int(os.environ.get("ATOS_TEST_CASES", "120"))
IS_FULL = CASES > 1000
ALL_COMBINATIONS = IS_FULL or os.environ.get("ATOS_TEST_COMBINATIONS") == "all"
