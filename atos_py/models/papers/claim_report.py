"""Result files and findings of a reproduction: a page of claims in Markdown, the verdicts as CSV, all measurements as CSV."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.devices import Device
from ...errors import FileWriteError
from ...support.atomic_files import replacing
from ...tools.machine import read_device_facts, read_versions
from ...tools.tables import write_csv
from .claims import LEAST_PAIRS, VERDICTS, Claim, Finding, judge
from .turns import Samples

__all__ = ["Reproduction", "judge_all", "summarize", "write_report"]


@dataclass(frozen=True)
class Reproduction:
    """What a reproduction of a paper gives.

    Attributes
    ----------
    files : list of Path
        The files written.
    findings : list of Finding
        The verdict on each claim, for each graph that it is about.
    """

    files: list[Path]
    findings: list[Finding]


def judge_all(claims: Sequence[Claim], device: str, measured: Sequence[Samples]) -> list[Finding]:
    """Return the findings of claims, graph by graph; a claim about graphs of a kind that was not measured is not decided."""
    findings: list[Finding] = []
    for claim in claims:
        about = (judge(claim, *each.graph[:2], device, each.runs, each.refusals) for each in measured)
        # Once, if it is not applicable. Findings compare their NaNs by value from Python 3.13 on, and tuples by identity.
        found = list({tuple(vars(each).values()): each for each in about if each is not None}.values())
        if not found:
            why = f"No graph of this kind was measured: {' or '.join(claim.graphs)}."
            found = [Finding(claim=claim, graph="", verdict="not decided", reason=why)]
        findings += found
    return findings


def summarize(findings: Sequence[Finding]) -> str:
    """Return how many findings have each verdict, in a sentence."""
    count = Counter(finding.verdict for finding in findings)
    claims = len({finding.claim.key for finding in findings})
    return f"{claims} claims, {len(findings)} findings: {', '.join(f'{count[verdict]} {verdict}' for verdict in VERDICTS)}."


def write_report(
    out: Path, paper: str, title: str, command: str, device: Device, measured: Sequence[Samples], findings: Sequence[Finding]
) -> list[Path]:
    """Write ``<paper>.md``, ``<paper>-claims.csv`` and ``<paper>-runs.csv``; return their paths."""
    page, verdicts, runs = out / f"{paper}.md", out / f"{paper}-claims.csv", out / f"{paper}-runs.csv"
    lines = [f"# {title}", "", summarize(findings), "", *_describe(command, device, measured)]
    lines += [
        "",
        "| claim | place | the paper says | graph | measured here | verdict | why |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for found in findings:
        claim = found.claim
        measures = found.measured if found.over is None else f"{claim.compared}: {found.measured}, {found.pairs} pairs"
        cells = claim.key, claim.place, claim.says, found.graph, measures, f"**{found.verdict}**", found.reason
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    try:
        with replacing(page, "page") as file:
            file.write(("\n".join(lines) + "\n").encode())
        written = [page, write_csv(verdicts, [_row(found) for found in findings])]
        samples = _rows_of_samples(measured)
        return [*written, write_csv(runs, samples)] if samples else written
    except OSError as error:
        raise FileWriteError(f"cannot write into {str(out)!r}: {error.strerror or error}") from error


def _describe(command: str, device: Device, measured: Sequence[Samples]) -> list[str]:
    """Return the sentences on the machine, the versions, the graphs and the way that a verdict is reached."""
    facts = read_device_facts(device)
    versions = ", ".join(f"{name} {version}" for name, version in read_versions().items())
    driver = f", driver {facts['driver']}, CUDA {facts['cuda']}" if device.kind == "cuda" else ""
    lines = [f"    {command}", "", f"- *Device*: {facts['name']}, {facts['processors']} processors{driver}."]
    lines.append(f"- *Versions*: {versions}, commit {_read_commit()}.")
    for each in measured:
        graph = each.graph
        lines.append(f"- *Graph* {graph.name}: {graph.kind}, {graph.vertices:,} vertices, {graph.edges:,} directed edges.")
    lines.append(
        f"- *Verdicts*: runs are made in turns, each result is verified, and a turn is a pair. Times are in ms, with their "
        f"quartiles. A ratio is the median of the pairs, with its 95 % interval by the bootstrap of a fixed seed. A claim "
        f"*holds* if the interval lies where the paper has the ratio, has *turned* if it lies on the other side, and is *not "
        f"decided* if the threshold lies within it, or there are fewer than {LEAST_PAIRS} pairs."
    )
    return lines


def _read_commit() -> str:
    """Return the commit of the sources that run, "+" behind it if they were changed since; "unknown" if they are installed."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return "unknown"
    asked = ["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--untracked-files=no", "--", "atos_py"]
    try:
        commit, changes = (
            subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
            for words in asked
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return commit + ("+" if changes else "")


def _row(found: Finding) -> dict[str, Any]:
    claim = found.claim
    numbers: dict[str, Any] = {"ratio": found.ratio, "low": found.low, "high": found.high}
    for name, spread in (("over", found.over), ("under", found.under)):
        for part in ("median", "low", "high"):
            numbers[f"{name}_{part}"] = "" if spread is None else getattr(spread, part)
    test = {"compared": claim.compared, "test": claim.test, "threshold": claim.threshold, "pairs": found.pairs}
    row = {"claim": claim.key, "place": claim.place, "says": claim.says, "graph": found.graph, **test, **numbers}
    return row | {"verdict": found.verdict, "reason": found.reason}


def _rows_of_samples(measured: Sequence[Samples]) -> list[dict[str, Any]]:
    """Return a row for each turn of each run; a number that a run does not have is left empty."""
    rows = [
        {"graph": each.graph.name, "run": run, "turn": turn, **numbers}
        for each in measured
        for run, turns in each.runs.items()
        for turn, numbers in enumerate(turns)
    ]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name, "") for name in names} for row in rows]
