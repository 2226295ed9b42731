"""Run the tests of the compiler and of launches, on CPU threads, with another Numba: the newest, or a version.

python tests/other_numba.py
python tests/other_numba.py 0.61.2

Without a version, nothing is run where the environment has the newest Numba already, whose tests are the ordinary ones. What is
installed goes to build/numba-VERSION; kernels are linked there too, where this environment can.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import subprocess
import sys

from repository import ROOT

TESTS = ["tests/compile", "tests/runtime"]


def newest() -> str | None:
    """Return the newest Numba that pip finds for this Python, or None without a network."""
    command = [*pip(sys.executable), "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-", "numba"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["install"][0]["metadata"]["version"] if done.returncode == 0 else None


def pip(python: str) -> list[str]:
    return [python, "-m", "pip", "install", "--disable-pip-version-check"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version", nargs="?")
    parser.add_argument("tests", nargs="*", default=TESTS, help=f"default: {' '.join(TESTS)}")
    given = parser.parse_args()
    here = importlib.metadata.version("numba")
    version = given.version or newest()
    if version is None:
        print("pip finds no Numba: is there a network?")
        return 0
    if version == here:
        print(f"Numba {here} is the newest that pip finds, and all tests run with it")
        return 0
    target = ROOT / "build" / f"numba-{version}"
    python = str(target / "bin" / "python")
    print(f"running {' '.join(given.tests)} with Numba {version} in {target.relative_to(ROOT)} (here: {here})")
    subprocess.run([sys.executable, "-m", "venv", str(target)], check=True)
    linkers = ["cuda-core[cu13]>=0.6,<2"] if importlib.util.find_spec("cuda") else []
    tools = ["cffi", "hypothesis", "networkx", "pytest<9.2", "pytest-timeout", "pytest-xdist", "scipy"]
    subprocess.run([*pip(python), "--quiet", f"numba=={version}", *tools, *linkers], check=True)
    command = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-m", "not gpu", *given.tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
