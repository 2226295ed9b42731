"""What readers are tried with: an input is bytes, of which the first names a reader and the second says how it is called.

`try_input` hands the rest to the reader, as a file. The property of every input: the reader returns an object that is found
right from the object alone, or raises an AtosError, and this process has never had more than `MEMORY` bytes. Whoever calls
`try_input` has a limit of time, and notices if the process ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "graph")]

from test_hostile_files import TEXTS, plain_edges  # noqa: E402

import atos_py as atos  # noqa: E402
from atos_py.errors import AtosError  # noqa: E402
from atos_py.graph.formats import plausible  # noqa: E402
from atos_py.graph.io import read_edges  # noqa: E402
from atos_py.runtime.checkpoint import _MAGIC  # noqa: E402
from atos_py.tools.report import Report, Row  # noqa: E402

SWITCHES = ("symmetrize", "deduplicate", "remove_loops", "sort", "simplify", "renumber", "weights", "devices")
BETWEEN = b"\xfe\xed\xff\0"  # what stands between two parts of an input
LARGEST_CAPACITY = 10**6  # of a queue in a checkpoint that is tried: memory is taken for what a valid file asks for
DEVICES = {"cpu": {"name": "a CPU", "processors": 2}}  # of reports
MEMORY = 2 << 30  # bytes of this process, of which the modules take a tenth
plausible._MAX_IDLE_OFFSETS = 1 << 20  # otherwise many inputs of a few bytes are graphs of a gigabyte, as documented


class WrongError(Exception):
    """What a reader returned is not right."""


def demand(holds: Any, what: str) -> None:
    if not holds:
        raise WrongError(what)


@atos.task
def arrive(worker, v, joins, handles):  # type: ignore[no-untyped-def]
    worker.arrive_at(joins, handles[v % handles.size], 1)


# --- What is right


def check_graph(graph: atos.Graph, edges_named: int | None = None, **switches: bool) -> None:
    """Check a graph by its arrays: offsets that do not fall, neighbors that exist, labels without repetitions."""
    indptr, indices = graph.indptr.to_numpy(), graph.indices.to_numpy()
    n, m = len(indptr) - 1, len(indices)
    demand(n >= 0 and indptr[0] == 0 and indptr[-1] == m and np.all(np.diff(indptr.astype(np.int64)) >= 0), "row offsets")
    demand(m == 0 or (indices.min() >= 0 and indices.max() < n), "a neighbor that is no vertex")
    demand((graph.num_vertices, graph.num_edges) == (n, m), "the numbers of vertices and edges")
    for name, values in {"weights": graph.weights, **(graph.edge_arrays or {})}.items():
        demand(values is None or len(values) == m, f"the length of {name}")
    labels = graph.labels
    demand(labels is None or (len(labels) == n and len(np.unique(labels)) == n), "labels")
    pairs = np.stack([np.repeat(np.arange(n), np.diff(indptr.astype(np.int64))), indices.astype(np.int64)])
    if switches.get("simplify") or switches.get("remove_loops"):
        demand(np.all(pairs[0] != pairs[1]), "an edge from a vertex to itself")
    if switches.get("simplify") or switches.get("deduplicate"):
        demand(len(np.unique(pairs, axis=1).T) == m, "an edge that is there twice")
    if switches.get("symmetrize"):
        there, back = (each[:, np.lexsort(each)] for each in (pairs, pairs[::-1]))
        demand(np.array_equal(there, back), "an edge without the one that goes back")
    if switches.get("sort"):
        inside = pairs[0][1:] == pairs[0][:-1]
        demand(np.all(np.diff(pairs[1])[inside] >= 0), "neighbors in no order")


def check_queue(queue: atos.Queue, folder: Path, **arrays: Any) -> None:
    """Check that a queue is the same once it has been saved and loaded again."""
    items = queue.peek()
    demand(len(items) == len(queue) and items.dtype == queue.dtype, "the items of a queue")
    queue.save(folder / "again.atos", **arrays)
    again = atos.Queue.load(folder / "again.atos", device="cpu", **arrays)
    demand(again.peek().tobytes() == items.tobytes(), "items after another checkpoint")
    demand((again.capacity, again.buckets, again.dtype) == (queue.capacity, queue.buckets, queue.dtype), "options of a queue")


# --- Readers


def read_graph(name: str, content: bytes, switches: dict[str, bool], folder: Path) -> None:
    """Load a graph file, of a text without switches also in a slow and plain way."""
    path, options = folder / name, {**switches, "weights": not switches["weights"]}
    path.write_bytes(content)
    in_parts = options.pop("devices")
    try:
        parts = atos.Graph.load(path, devices=["cpu:0", "cpu:1"], **options) if in_parts else None
        graph = atos.Graph.load(path, device="cpu", **options)
    except AtosError as error:
        demand(str(path) in str(error), f"a refusal that does not name the file: {error}")
        demand((getattr(error, "line", None) or 1) >= 1, f"a refusal of line {getattr(error, 'line', None)}")
        return
    check_graph(graph, **switches)
    if parts is not None:
        demand((parts.num_vertices, parts.num_edges) == (graph.num_vertices, graph.num_edges), "the size of a graph in parts")
    # The plain reader knows no attributes of networkx, and no matrix of which each line stands for two edges.
    is_plain = name in TEXTS and b"{" not in content and b"skew" not in content.lower()
    if is_plain and not any(switches.values()):
        found = [
            (int(u), int(v)) if chunk.weights is None else (int(u), int(v), float(chunk.weights[i]))
            for chunk in read_edges(path).chunks
            for i, (u, v) in enumerate(zip(chunk.sources, chunk.targets, strict=True))
        ]
        try:
            plain = plain_edges(name, content)
        except (AssertionError, ValueError) as error:
            raise WrongError(f"edges of a text in which a plain reader finds none: {error}") from error
        demand(found == plain, f"edges that are not those of the text: {found[:20]}, not {plain[:20]}")


def read_members(content: bytes, switches: dict[str, bool], folder: Path) -> None:
    """Load an archive whose checksums are right, whatever its members are: a name, a line feed and what the member holds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED if switches["sort"] else zipfile.ZIP_STORED) as archive:
        for member in content.split(BETWEEN)[:8]:
            name, _, held = member.partition(b"\n")
            archive.writestr(zipfile.ZipInfo(f"{name.decode('latin-1')}.npy"), held)
    read_graph("members.npz", buffer.getvalue(), switches, folder)


def read_checkpoint(content: bytes, switches: dict[str, bool], folder: Path, joins: bool = False) -> None:
    """Load a checkpoint; a refusal changes no array."""
    path = folder / "run.atos"
    path.write_bytes(content)
    values = np.full(7, 42, np.float32)
    arrays: dict[str, Any] = {} if switches["sort"] else {"values": values}
    if joins:
        arrays["joins"] = atos.Joins(4, max_capacity=64, device="cpu")
    try:
        queue = atos.Queue.load(path, device="cpu", **arrays)
    except AtosError:
        demand(np.all(values == 42), "a refusal has changed an array")
        return
    if joins:
        check_joins(arrays["joins"])
    check_queue(queue, folder, **arrays)


def check_joins(joins: atos.Joins) -> None:
    """Use joins that a checkpoint has filled: what is open is listed, others can be opened beside it, and tasks can arrive."""
    waiting, pending, _ = joins.waiting(), joins.pending, joins.result
    demand(len(waiting.handle) == pending, "some joins wait unlisted")
    try:
        opened = joins.open(1, n=8)
    except AtosError:
        return
    demand(len({*opened.tolist(), *waiting.handle.tolist()}) == pending + 8, "a join was opened that was open already")
    demand(joins.pending == pending + 8, "joins that were opened are not open")
    handles, queue = atos.asarray(np.append(opened, waiting.handle), device="cpu"), atos.Queue(100, device="cpu")
    queue.push(np.arange(min(len(handles), 100)))
    with contextlib.suppress(AtosError):  # more arrivals than a join of the file waits for, or fewer
        queue.launch_thread(arrive, joins, handles, num_blocks=2, timeout=5)


def read_signed(content: bytes, switches: dict[str, bool], folder: Path, joins: bool = False) -> None:
    """Load a checkpoint whose sizes and checksum are right: its header, and after a separator all that follows."""
    header, _, body = content.partition(BETWEEN)
    try:
        capacity = json.loads(header)["capacity"]
        if LARGEST_CAPACITY < capacity < 2**50:
            return
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    version = 2 if switches["renumber"] else 1
    whole = _MAGIC + version.to_bytes(4, "little") + len(header).to_bytes(4, "little") + header + body
    read_checkpoint(whole + hashlib.sha256(whole).digest(), switches, folder, joins)


def read_joins(content: bytes, switches: dict[str, bool], folder: Path) -> None:
    """Load a checkpoint with joins."""
    read_signed(content, switches, folder, joins=True)


def read_report(content: bytes, switches: dict[str, bool], folder: Path) -> None:
    """Load a report of `atos bench`, and compare another one with it, as ``--against`` does."""
    path = folder / "report.json"
    path.write_bytes(content)
    try:
        report = Report.load(path)
        list(Report(DEVICES, {}, [], [Row("bfs", "g", "cpu", {}, [1.5, 2.0])]).compare(report, path))
    except AtosError:
        return


Reader = Callable[[bytes, dict[str, bool], Path], None]


def reader_of(name: str) -> Reader:
    return lambda content, switches, folder: read_graph(name, content, switches, folder)


TEXT_NAMES = ["a.gr", "a.mtx", "a.txt", "a.edges", "a.csv", "c.mtx", "a.wel"]
READERS: dict[str, Reader] = {
    **{name: reader_of(name) for name in [*TEXT_NAMES, "a.txt.gz", "a.npz"]},
    "members of .npz": read_members,
    "checkpoint": read_checkpoint,
    "signed checkpoint": read_signed,
    "joins": read_joins,
    "report": read_report,
}
NAMES = list(READERS)


def encode(reader: str, content: bytes, *switches: str) -> bytes:
    """Return the input by which a reader gets some bytes."""
    bits = sum(1 << place for place, name in enumerate(SWITCHES) if name in switches)
    return bytes([NAMES.index(reader), bits]) + content


def decode(data: bytes) -> tuple[str, dict[str, bool], bytes]:
    """Return the reader, the switches and the bytes of an input."""
    number, bits = data[0], data[1]
    return NAMES[number % len(NAMES)], {name: bool(bits >> place & 1) for place, name in enumerate(SWITCHES)}, data[2:]


def try_input(data: bytes, folder: Path) -> None:
    """Hand an input to its reader; raise what the reader must not raise, or `WrongError`."""
    if len(data) < 2:
        return
    reader, switches, content = decode(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        READERS[reader](content, switches, folder)
    demand(most_memory() < MEMORY, "memory that no input of this size is worth")


def most_memory() -> int:
    """Return the most bytes of memory that this process has had (`ru_maxrss` counts the process before an exec too)."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0]) * 1024
