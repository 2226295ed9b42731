"""Inputs for readers, ``python tests/soak/fuzz.py FOLDER SECONDS SEED``: guided by coverage where atheris is installed.

An input is in the file `current` of the folder before it is tried, so that it is there after anything that ends the process: an
exception, a signal, or `PATIENCE`, after which the process writes where each thread stands, and ends. The file `count` says how
many inputs came through. ``python tests/soak/fuzz.py INPUT`` tries one input again.
"""

from __future__ import annotations

import faulthandler
import importlib
import inspect
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "graph")]

PATIENCE = 20.0  # seconds for an input, on a machine that others use too
LARGEST_INPUT = 4096
# Modules that parse, whose coverage guides. None has code that Numba compiles.
GUIDING = ["formats.attributes", "formats.dimacs", "formats.edge_list", "formats.headings", "formats.matrix_market"]
GUIDING += ["formats.npz", "formats.text", "io", "labels", "edge_arrays"]
GUIDING = [f"atos_py.graph.{name}" for name in GUIDING] + ["atos_py.runtime.checkpoint", "atos_py.tools.report", "zipfile"]


def guide(atheris: Any) -> None:
    """Have atheris see the branches of the modules that guide."""
    for name in GUIDING:
        for value in vars(importlib.import_module(name)).values():
            members = [*vars(value).values()] if isinstance(value, type) else [value]
            for member in members:
                function = inspect.unwrap(getattr(member, "__func__", member))
                if inspect.isfunction(function) and function.__module__ == name:
                    atheris.instrument_func(function)


class Trial:
    """A function of inputs, which writes each down before it tries it."""

    def __init__(self, folder: Path) -> None:
        from soak.inputs import try_input

        self.files, self.count, self.try_input = folder / "files", 0, try_input
        self.files.mkdir(exist_ok=True)
        self.current, self.counted = (
            os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) for name in ("current", "count")
        )

    def __call__(self, data: bytes) -> None:
        os.ftruncate(self.current, 0)
        os.pwrite(self.current, data, 0)
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        self.try_input(data, self.files)
        faulthandler.cancel_dump_traceback_later()
        self.count += 1
        os.pwrite(self.counted, b"%d" % self.count, 0)


def mutate(data: bytes, chance: random.Random, words: list[bytes]) -> bytes:
    """Return an input that has been changed in a few places, and goes to the same reader in most cases."""
    from test_hostile_files import mutated

    head = bytes([data[0], data[1] ^ (1 << chance.randrange(8) if chance.random() < 0.2 else 0)])
    content = mutated(data[2:], chance)
    if chance.random() < 0.3:
        at = chance.randint(0, len(content))
        content = content[:at] + chance.choice(words) + content[at + chance.choice((0, 0, 1, 4)) :]
    return (head + content)[:LARGEST_INPUT]


def fuzz(folder: Path, seconds: float, seed: int) -> None:
    """Try inputs for so long."""
    end = time.monotonic() + seconds
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        atheris = None
    if atheris is not None:
        guide(atheris)
    from soak.corpus import WORDS, valid_inputs

    seeds, trial, chance = valid_inputs(folder), Trial(folder), random.Random(seed)
    for data in seeds:
        trial(data)
    if atheris is None:
        while time.monotonic() < end:
            trial(mutate(chance.choice(seeds), chance, WORDS))
        return
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(data)

    def some_mutation(data: bytes, size: int, number: int) -> bytes:
        own = random.Random(number)
        if len(data) > 2 and own.random() < 0.5:
            return mutate(data, own, WORDS)[:size]
        return bytes(atheris.Mutate(data, size))

    flags = [
        f"-max_total_time={max(1, int(end - time.monotonic()))}",
        f"-seed={seed % 2**31 or 1}",
        f"-max_len={LARGEST_INPUT}",
    ]
    flags += [
        "-rss_limit_mb=0",
        f"-timeout={10 * PATIENCE:.0f}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=0",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], trial, custom_mutator=some_mutation)
    atheris.Fuzz()


def main() -> None:
    """Try one input, or many."""
    if len(sys.argv) == 2:
        with tempfile.TemporaryDirectory() as directory:
            Trial(Path(directory))(Path(sys.argv[1]).read_bytes())
    else:
        folder, seconds, seed = sys.argv[1:4]
        fuzz(Path(folder), float(seconds), int(seed))


if __name__ == "__main__":
    main()
