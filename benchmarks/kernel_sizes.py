"""Print what the kernels of tests/compile/test_kernels.py take: registers, spills, stack and code, linked without a GPU.

python benchmarks/kernel_sizes.py
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "compile")]

from test_kernels import TASKS, WORKERS, kernel  # noqa: E402


def main() -> None:
    print(f"{'task':28} {'worker':7} {'registers':>9} {'spills':>7} {'stack':>6} {'bytes':>7}")
    for name in TASKS:
        for worker in WORKERS:
            k = kernel(name, worker)
            print(f"{name:28} {worker:7} {k.registers:9} {k.spill_bytes:7} {k.stack_bytes:6} {len(k.code):7}", flush=True)


if __name__ == "__main__":
    main()
