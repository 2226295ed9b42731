"""Random launches, ``python tests/soak/launches.py FOLDER SECONDS SEED DEVICE``: blocks of small trees, by stress.py.

The file `count` of the folder says how many launches went well. A block in which one did not ends the process with 1, after the
command that does the block again, and one in which a launch hangs ends it with 2.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks")]

import stress  # noqa: E402

import atos_py as atos  # noqa: E402

LAUNCHES, THREADS, NODES, PATIENCE = 2000, 2, 700, 120


def main() -> None:
    """Run blocks until the time is over."""
    folder, seconds, seed, device = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), atos.device(sys.argv[4])
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        how = f"--launches {LAUNCHES} --threads {THREADS} --nodes {NODES} --patience {PATIENCE} --seed {seed}"
        print(f"again: python benchmarks/stress.py --device {device} {how}", flush=True)
        progress = stress.Progress(LAUNCHES, end, NODES)
        if not stress.launch_all(device, progress, THREADS, seed, PATIENCE):
            print(stress.table(progress))
            sys.exit(1)
        count += sum(counts["launches"] for counts in progress.rows.values())
        (folder / "count").write_text(str(count))
        seed += THREADS


if __name__ == "__main__":
    main()
