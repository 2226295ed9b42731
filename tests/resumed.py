"""Runs of the tests that go on where they were stopped, for machines that are lent for minutes (`make gpu-test`).

``ATOS_TEST_PASSED`` names a file in which each run notes the tests that have passed; a later run leaves these out, unless the
sources, a version of a package or the tier of kernels (``ATOS_TIER``) have changed since. With ``ATOS_TEST_SECONDS=540`` no
test is started after 540 seconds; a run that leaves tests for another one says how many, and ends with status 75. A run that is
killed has no summary, so that each test that begins or fails is noted at once, in a file with the suffix ``.log``.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from stamps import LINKERS, hash_files, version_of

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

SOURCES = (
    "atos_py/**/*",
    "csrc/**/*",
    "third_party/**/*",
    "tests/**/*",
    "examples/**/*",
    "docs/**/*.md",
    "*.md",
    "*.py",
    "*.toml",
)
SOME_LEFT = 75  # EX_TEMPFAIL: try again


class GoOn:
    """The plugin of pytest that leaves out what has passed, and starts nothing when the time is over."""

    def __init__(self) -> None:
        self.is_worker = "PYTEST_XDIST_WORKER" in os.environ
        named, seconds = os.environ.get("ATOS_TEST_PASSED"), os.environ.get("ATOS_TEST_SECONDS")
        if seconds and not self.is_worker:  # pytest-xdist's workers have the end from here
            os.environ["ATOS_TEST_END"] = str(time.time() + float(seconds))
        self.end = float(os.environ.get("ATOS_TEST_END", "inf"))
        self.file = Path(named) if named else None
        self.passed: set[str] = set()
        self.left = 0
        if self.file:
            key = " ".join([hash_files(SOURCES), *map(version_of, LINKERS), os.environ.get("ATOS_TIER", "auto")])
            content = self.file.read_text() if self.file.is_file() else ""
            if self.is_worker:  # which has to collect what the others do, though tests have passed since
                content = content[: int(os.environ["ATOS_TEST_KNOWN"])]
            elif content.partition("\n")[0] != key:
                content = f"{key}\n"
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self.file.write_text(content)
            os.environ["ATOS_TEST_KNOWN"] = str(len(content))
            self.passed = set(content.splitlines()[1:])

    @pytest.hookimpl(trylast=True)  # since which cases of a test are chosen depends on which there are
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if item.nodeid in self.passed]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item.nodeid not in self.passed]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        if time.time() < self.end:
            return None
        self.left += 1
        if self.is_worker:
            item.config.workeroutput["left"] = self.left  # type: ignore[attr-defined]
        return True

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.left += getattr(node, "workeroutput", {}).get("left", 0)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.note(".log", f"begins {nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.note("", report.nodeid)
        elif report.failed:
            self.note(".log", f"fails {report.nodeid}\n{report.longreprtext}")

    def note(self, suffix: str, line: str) -> None:
        """Append to the file, or to the one beside it with a suffix."""
        if self.file and not self.is_worker:
            with self.file.with_name(self.file.name + suffix).open("a") as file:
                file.write(f"{line}\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.passed:
            session.exitstatus = pytest.ExitCode.OK  # all have passed before
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) and self.left:
            session.exitstatus = SOME_LEFT

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        if self.passed:
            terminalreporter.write_line(f"{len(self.passed)} tests left out, which have passed with these sources: {self.file}")
        if self.left:
            terminalreporter.write_line(f"{self.left} tests left, for which there was no time: run this again")
