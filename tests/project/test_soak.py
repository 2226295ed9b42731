"""Longer runs, `make soak`: a short one passes, what is wrong is found and said with its seed, and pages show the sums."""

from __future__ import annotations

import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT
from soak import run
from soak.table import FILE, MARK, Run, add, read, table, with_sums

RUNS = [
    Run("2026-12-01", "0123456789", "2 CPU cores", 7, 1_000_000, 20, 3, 90.0, 0),
    Run("2026-12-02", "0123456789", "an H200", 8, 500, 0, 4, 30.0, 1),
    Run("2026-12-03", "abcdef0123", "2 CPU cores", 9, 24, 1_000, 5, 60.0, 0),
]


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """Keep what is found in a folder of this test."""
    monkeypatch.setattr(run, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


@pytest.mark.parametrize("commits", [["0123456789", "0123456789"], ["0123456789", None], [None, None]])
def test_a_run_without_a_failure_adds_a_line(kept, tmp_path, monkeypatch, capsys, commits):
    """Whose commit is that of the sources before the run and after it."""
    monkeypatch.setattr(run, "commit", commits.copy().pop)
    monkeypatch.setattr(run, "take_turn", lambda part, *_: {"launches": 30, "inputs": 200, "steps": 1}[part])
    file = tmp_path / "soak.csv"
    assert run.main(["--minutes", "0", "--seed", "5", "--csv", str(file)]) == 0
    assert "nothing failed: 30 launches, 200 inputs, 1 steps" in capsys.readouterr().out
    if None in commits:
        assert not file.exists()
    else:
        (line,) = read(file)
        assert line[1:7] == ("0123456789", run.machine("cpu"), 5, 30, 200, 1)


FEW_CALLS = """
import sys
sys.path[:0] = [{soak!r}]
import api
api.EXAMPLES, api.STEPS = 3, 12  # each kind of call compiles
api.main()
"""


def test_a_short_run(kept, tmp_path, monkeypatch, capsys):
    (tmp_path / "few.py").write_text(FEW_CALLS.format(soak=str(run.HERE)))
    monkeypatch.setitem(run.PROGRAMS, "steps", tmp_path / "few.py")
    monkeypatch.setattr(run, "commit", lambda: "0123456789")
    assert run.main(["--minutes", "0.05", "--seed", "1", "--csv", str(tmp_path / "soak.csv")]) == 0, capsys.readouterr().out
    (line,) = read(tmp_path / "soak.csv")
    assert (line.seed, line.failures) == (1, 0)
    assert line.launches > 0
    assert line.inputs > 100
    assert line.steps >= 30


# A program of tests/soak with a fault: what comes before it.
FAULTS = {
    "inputs": """
import sys
sys.path[:0] = [{soak!r}, {tests!r}, {tests!r} + "/graph"]
import fuzz
from soak import inputs

def read_report(content, switches, folder):
    if content.count(b"{{") > 2 and len(content) % 7 == 3:
        raise KeyError("reader")
inputs.READERS["report"] = read_report
""",
    "launches": """
import sys
sys.path[:0] = [{soak!r}, {benchmarks!r}]
import launches as fuzz, stress
push, stress.LAUNCHES, fuzz.LAUNCHES = stress.atos.Queue.push, 1, 3

def lose(queue, items, *rest):
    push(queue, items[:0], *rest)
stress.atos.Queue.push = lose
""",
}


@pytest.mark.parametrize("part", FAULTS)
def test_a_fault_is_found(kept, tmp_path, monkeypatch, part):
    """A reader that raises another error, and a queue that loses an item."""
    fault = FAULTS[part].format(soak=str(run.HERE), tests=str(ROOT / "tests"), benchmarks=str(ROOT / "benchmarks"))
    program = tmp_path / "faulty.py"
    program.write_text(f"{fault}\nfuzz.main()\n")
    monkeypatch.setitem(run.PROGRAMS, part, program)
    with pytest.raises(run.FailedError, match="ended with 1, seed 3") as failed:
        run.take_turn(part, tmp_path, 200, 3, "cpu")  # which ends when the fault is found
    said, again = str(failed.value), str(failed.value).splitlines()[-1]
    assert again.startswith("again: python ")
    if part == "launches":
        assert "| wrong |" in said
        assert again.endswith(" --seed 3")
        return
    assert "KeyError: 'reader'" in said
    (file,) = kept.iterdir()
    found = subprocess.run([sys.executable, program, file], capture_output=True, text=True, check=False)
    assert "KeyError: 'reader'" in found.stderr
    mended = subprocess.run([sys.executable, *shlex.split(again)[2:]], capture_output=True, text=True, check=False, cwd=ROOT)
    assert mended.returncode == 0, mended.stderr


def test_a_hang_is_found(kept, tmp_path, monkeypatch):
    program = tmp_path / "hangs.py"
    program.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setitem(run.PROGRAMS, "steps", program)
    monkeypatch.setattr(run, "LATE", 0.5)
    with pytest.raises(run.FailedError, match="did not end within 0 s, seed 3"):
        run.take_turn("steps", tmp_path, 0, 3, "cpu")


def test_a_failure_adds_no_line(kept, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise run.FailedError("again: ...")

    monkeypatch.setattr(run, "take_turn", fail)
    assert run.main(["--minutes", "0", "--seed", "5", "--csv", str(tmp_path / "soak.csv")]) == 1
    assert "soak: failed, seed 5; no line is added" in capsys.readouterr().out
    assert not (tmp_path / "soak.csv").exists()


def test_sums(tmp_path):
    file = tmp_path / "soak.csv"
    for each in RUNS:
        add(each, file)
    assert read(file) == RUNS
    assert table(RUNS).splitlines()[2:] == [
        "| 2 CPU cores | 2 | 1,000,024 | 1,020 | 8 | 2.5 | 0 |",
        "| an H200 | 1 | 500 | 0 | 4 | 0.5 | 1 |",
        "| all | 3 | 1,000,524 | 1,020 | 12 | 3.0 | 1 |",
    ]
    assert with_sums(f"before\n\n{MARK}\n\nafter", file) == f"before\n\n{table(RUNS)}\n\nafter"
    assert with_sums("a page without", tmp_path / "nowhere") == "a page without"


@pytest.mark.parametrize(
    "line", ["2026-12-01,0,m,1,2,3", "2026-12-01,0,m,1,2,3,4,5,6,7", "2026-12-01,,m,1,2,3,4,5,6", "2026-12-01,0,m,1,-2,3,4,5,6"]
)
def test_a_line_that_is_none(tmp_path, line):
    (tmp_path / "soak.csv").write_text(f"{','.join(Run._fields)}\n{line}\n")
    with pytest.raises(ValueError, match=r"soak\.csv, line 2"):
        read(tmp_path / "soak.csv")


def test_the_page_shows_the_sums_of_the_file():
    pytest.importorskip("sphinx_gallery")
    text = [(ROOT / "docs" / "trust.md").read_text()]
    runpy.run_path(str(ROOT / "docs" / "conf.py"))["_soak"](None, "trust", text)
    assert MARK not in text[0]
    assert table(read(FILE)) in text[0]
