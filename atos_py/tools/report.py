"""Report of a benchmark: rows, facts of graphs and devices; written, read and compared with another report."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InvalidArgumentError, MissingFileError

__all__ = ["GraphFacts", "Report", "Row", "TextTable"]

_LAUNCHED = ("worker", "fetch_size", "num_blocks", "num_threads", "persistent", "barrier")


@dataclass
class Row:
    """One setting of one algorithm on one graph and device.

    Attributes
    ----------
    algorithm, graph, device : str
    options : dict
        The given options; everything else was the algorithm's own choice.
    milliseconds, call_milliseconds : list of float
        Of each counted run, by the device's clock, and of the whole call.
    launch : dict
        Fields of `LaunchStats` of the last run: configuration, tasks run, rounds, overhead_bytes.
    result : dict
        Numbers from the verification.
    driver_bytes : int or None
        By how much the free memory of a GPU went down over all runs: code, and stacks of threads.
    failure : str
        Why a run was wrong; empty if none was.
    skipped : str
        Why the setting cannot run; empty if it can.
    """

    algorithm: str
    graph: str
    device: str
    options: dict[str, Any]
    milliseconds: list[float] = field(default_factory=list)
    call_milliseconds: list[float] = field(default_factory=list)
    launch: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    driver_bytes: int | None = None
    failure: str = ""
    skipped: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Identity of the setting: rows of two reports that have it in common are compared."""
        return self.algorithm, self.graph, self.device, json.dumps(self.options, sort_keys=True)

    def cells(self) -> list[str]:
        """Return the row as text, in the columns of `HEADER`."""
        named = [self.algorithm, self.graph, self.device]
        if self.skipped or not self.milliseconds:
            reason = f"cannot run: {self.skipped}" if self.skipped else f"NO: {self.failure}"
            return [*named, _format_setting(self.options, {}), *[""] * 6, reason]
        middle, launch = statistics.median(self.milliseconds), self.launch
        overhead = f"{launch['overhead_bytes'] / 1e6:.1f}"
        if self.driver_bytes is not None:
            overhead += f" + {self.driver_bytes / 1e6:.1f}"
        result = ", ".join(f"{k} {format(v, '.2e' if isinstance(v, float) else ',')}" for k, v in self.result.items())
        return [
            *named,
            _format_setting(self.options, launch),
            f"{middle:.3f} ({min(self.milliseconds):.3f} to {max(self.milliseconds):.3f})",
            f"{statistics.median(self.call_milliseconds):.3f}",
            f"{launch['tasks_run']:,}",
            f"{launch['tasks_run'] / middle / 1e3:.1f}" if middle else "",
            overhead,
            result,
            f"NO: {self.failure}" if self.failure else "yes",
        ]


HEADER = (
    "algorithm", "graph", "device", "setting", "ms (least to most)", "call ms", "tasks", "M tasks/s", "overhead MB", "result",
    "verified",
)  # fmt: skip
# Usual widths of the columns from ms to result; the widths of those before follow from what is measured.
_WIDTHS = (28, 9, 11, 9, 11, 26)
_NUMBERS = range(4, 9)  # columns that are aligned on the right
_LONGEST_LAUNCH = "warp 1056x1024 fetch 128 persistent barrier"


class TextTable:
    """Rows of a benchmark as aligned text under a heading; a cell wider than its column shifts the rest of its row.

    Parameters
    ----------
    algorithms, graphs, devices : iterable of str
        The names that rows will have.
    settings : iterable of dict
        The options that rows will have.
    """

    def __init__(
        self, algorithms: Iterable[str], graphs: Iterable[str], devices: Iterable[str], settings: Iterable[dict[str, Any]]
    ) -> None:
        own = (_format_own(setting) for setting in settings)
        launches = (" ".join(filter(None, [_LONGEST_LAUNCH, text])) for text in own)
        named = [max(map(len, names)) for names in ([*algorithms], [*graphs], [*devices], [*launches])]
        self._widths = [max(pair) for pair in zip((*named, *_WIDTHS, 0), map(len, HEADER), strict=True)]

    @property
    def heading(self) -> str:
        """Names of the columns, with units."""
        return self._align(HEADER)

    def format(self, row: Row) -> str:
        """Return a row, aligned with the heading."""
        return self._align(row.cells())

    def _align(self, cells: Sequence[str]) -> str:
        aligned = (
            cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(cells, self._widths, strict=True))
        )
        return "  ".join(aligned).rstrip()


def _format_own(options: dict[str, Any]) -> str:
    """Return the options that are no options of a launch."""
    return " ".join(f"{name}={value}" for name, value in options.items() if name not in _LAUNCHED)


def _format_setting(options: dict[str, Any], launch: dict[str, Any]) -> str:
    if not launch:
        return " ".join(f"{name}={value}" for name, value in options.items())
    schedule = f"{'persistent' if launch['persistent'] else 'discrete'}{' barrier' if launch['barrier'] else ''}"
    shape = f"{launch['worker']} {launch['num_blocks']}x{launch['num_threads']} fetch {launch['fetch_size']} {schedule}"
    return " ".join(filter(None, [shape, _format_own(options)]))


@dataclass
class GraphFacts:
    """Cost of making a graph; `host_peak_bytes` is the peak of the host's memory, None where it is not known."""

    graph: str
    vertices: int
    edges: int
    seconds: float
    csr_bytes: int
    host_peak_bytes: int | None

    def __str__(self) -> str:
        text = f"{self.graph}: {self.vertices:,} vertices, {self.edges:,} edges, {self.csr_bytes / 1e6:,.1f} MB, "
        text += f"made in {self.seconds:.1f} s"
        if self.host_peak_bytes is None:
            return text
        return f"{text} with at most {self.host_peak_bytes / max(self.csr_bytes, 1):.2f} times its size of the host's memory"


@dataclass
class Report:
    """All measurements, and the devices and versions that they are of."""

    devices: dict[str, dict[str, Any]]
    versions: dict[str, str]
    graphs: list[GraphFacts] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)

    def to_json(self) -> str:
        """Return everything as JSON."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Report:
        """Read what `to_json` wrote."""
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
            graphs, rows = [GraphFacts(**g) for g in raw["graphs"]], [Row(**r) for r in raw["rows"]]
            report = cls(dict(raw["devices"]), dict(raw["versions"]), graphs, rows)
            report._check_compared()
        except OSError as error:
            raise MissingFileError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InvalidArgumentError(f"{path} is not a report of this command: {error!r}") from error
        return report

    def _check_compared(self) -> None:
        """Raise a TypeError or a KeyError if `compare` could not work with this report of a file, which may say anything."""
        for facts in self.devices.values():
            _ = facts["name"], facts["processors"]
        for row in self.rows:
            if not isinstance(row.options, dict) or {*map(type, row.key)} != {str}:
                raise TypeError(f"the setting of a row is {row.key!r:.200}")
            times = row.milliseconds
            if not isinstance(times, list) or not all(isinstance(ms, (int, float)) and 0 <= ms < math.inf for ms in times):
                raise TypeError(f"the times of a row are {times!r:.80}")

    def to_markdown(self) -> str:
        """Return tables for people."""
        lines = ["# Measurements", ""]
        lines += [f"- {name}: {', '.join(f'{k} {v}' for k, v in facts.items())}" for name, facts in self.devices.items()]
        lines += [f"- {', '.join(f'{name} {version}' for name, version in self.versions.items())}"]
        lines += [f"- {graph}" for graph in self.graphs]
        lines += ["", "| " + " | ".join(HEADER) + " |", "|" + " --- |" * len(HEADER)]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row.cells()) + " |" for row in self.rows]
        return "\n".join(lines) + "\n"

    def compare(self, old: Report, path: Path) -> Iterator[str]:
        """Yield a line with both medians, and their ratio, for each setting in both reports; refuse one of other devices."""
        for name, facts in self.devices.items():
            there = old.devices.get(name)
            if there is None or any(there.get(key) != facts[key] for key in ("name", "processors")):
                was = f"{there['name']}, {there['processors']}" if there else "no such device"
                raise InvalidArgumentError(
                    f"{path} was not measured on this machine: {name} is {facts['name']}, {facts['processors']}, there {was}"
                )
        before = {row.key: row for row in old.rows if row.milliseconds}
        for row in self.rows:
            if row.milliseconds and row.key in before:
                new, was_ms = statistics.median(row.milliseconds), statistics.median(before[row.key].milliseconds)
                where = f"{row.algorithm} {row.graph} {row.device} {_format_setting(row.options, row.launch)}"
                ratio = f": {new / was_ms:.3f} times as long" if was_ms else ""
                yield f"{where}: {new:.3f} ms, was {was_ms:.3f}{ratio}"
