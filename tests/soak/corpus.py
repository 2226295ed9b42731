"""Valid files of each reader, from which fuzzing begins, and words that formats have."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
from graph_files import GOOD
from soak.inputs import BETWEEN, DEVICES, SWITCHES, TEXT_NAMES, encode
from test_hostile_files import TOKENS

import atos_py as atos
from atos_py.runtime.checkpoint import _CHECKSUM_BYTES, _FIXED_BYTES, _MAGIC

__all__ = ["WORDS", "valid_inputs"]

JSON_WORDS = (
    b'"capacity" "dtype" "pending" "level" "tasks_run" "arrays" "buckets" "delta" "auto" "kinds" "take" "newest"'.split()
)
JSON_WORDS += b'"names" "formats" "offsets" "itemsize" "<i8" "<u4" "<f4" null true NaN Infinity -1 1e400 [] {} [[[['.split()
MATRIX_WORDS = b"%%MatrixMarket matrix coordinate real integer pattern general symmetric skew-symmetric complex array".split()
NUMPY_WORDS = b"indptr indices weights labels format shape data row col edge_arrays/ \x93NUMPY 'descr' fortran_order".split()
WORDS = [token for token in TOKENS if len(token) < 60] + JSON_WORDS + MATRIX_WORDS + NUMPY_WORDS + [BETWEEN]


def members_of(**arrays: np.ndarray) -> bytes:
    """Return arrays as `read_members` takes them."""
    with tempfile.TemporaryFile() as file:
        parts = []
        for name, array in arrays.items():
            file.seek(0)
            file.truncate()
            np.save(file, array)
            file.seek(0)
            parts.append(name.encode() + b"\n" + file.read())
    return BETWEEN.join(parts)


def checkpoints(folder: Path) -> dict[str, bytes]:
    """Return files of several kinds of queues, by the names of readers."""
    path, found = folder / "seed.atos", {}
    record = np.dtype([("node", "i8"), ("both", "f4", (2,))])
    queues = {
        "plain": atos.Queue(10, dtype=np.int64, device="cpu"),
        "records": atos.Queue(10, dtype=record, device="cpu"),
        "buckets": atos.Queue(10, buckets=4, delta=2.5, device="cpu"),
        "newest": atos.Queue(10, take="newest", device="cpu"),
        "values": atos.Queue(10, dtype=np.int64, device="cpu"),
        "joins": atos.Queue(10, device="cpu"),
        "joins of large items": atos.Queue(10, dtype=np.dtype([(name, "i8") for name in "abcd"]), device="cpu"),
    }
    for name, queue in queues.items():
        queue.push(np.zeros(3, queue.dtype) if queue.dtype.names else [1, 2, 3])
        arrays = {"values": np.arange(7, dtype=np.float32)} if name == "values" else {}
        if name.startswith("joins"):
            joins = arrays["joins"] = atos.Joins(4, max_capacity=64, device="cpu")
            joins.open(2, n=3)
        queue.save(path, **arrays)
        found[name] = path.read_bytes()
    return found


def valid_inputs(folder: Path) -> list[bytes]:
    """Return inputs that readers take: each file with no switch, and graphs with each switch."""
    files = {name: content for name, content in GOOD.items() if name in TEXT_NAMES} | {"a.txt.gz": gzip.compress(GOOD["a.txt"])}
    found = [encode(name, content, *switch) for name, content in files.items() for switch in [(), *zip(SWITCHES, strict=True)]]
    found += [encode("a.mtx", GOOD["b.mtx"])]
    found += [encode("a.npz", content) for name, content in GOOD.items() if name.endswith(".npz")]
    csr = {"indptr": np.array([0, 2, 3, 3]), "indices": np.array([1, 2, 0])}
    weights, labels = np.array([0.5, 1.0, -2.0]), np.array([7, 9, 30])
    for extra in ({}, {"weights": weights}, {"labels": labels}, {"edge_arrays/time": np.arange(3)}):
        found += [
            encode("members of .npz", members_of(**csr, **extra), *switch) for switch in [(), ("simplify",), ("symmetrize",)]
        ]
    for kind in ("csr", "csc", "coo"):
        named = {"format": np.array(kind), "shape": np.array([3, 3]), "data": weights, **csr, "row": csr["indices"]}
        found.append(encode("members of .npz", members_of(**named, col=csr["indices"])))
    for name, content in checkpoints(folder).items():
        switches = () if name == "values" else ("sort",)
        found.append(encode("checkpoint", content, *switches))
        switches += ("renumber",) if content[len(_MAGIC)] == 2 else ()
        length = int.from_bytes(content[_FIXED_BYTES - 4 : _FIXED_BYTES], "little")
        header, body = content[_FIXED_BYTES:][:length], content[_FIXED_BYTES + length : -_CHECKSUM_BYTES]
        reader = "joins" if name.startswith("joins") else "signed checkpoint"
        found.append(encode(reader, header + BETWEEN + body, *switches))
        if name in ("plain", "joins"):
            of_kinds = json.dumps(json.loads(header) | {"buckets": None, "delta": "auto", "kinds": ["a", None]}).encode()
            of_items = 3 * np.dtype(json.loads(header)["dtype"]).itemsize
            kinds = body[:of_items] + b"\0\1\1" + body[of_items:]
            found.append(encode(reader, of_kinds + BETWEEN + kinds, *switches, "renumber"))
    report = {
        "devices": DEVICES,
        "versions": {"numpy": "2"},
        "graphs": [{"graph": "g", "vertices": 3, "edges": 2, "seconds": 0.1, "csr_bytes": 50, "host_peak_bytes": None}],
        "rows": [{"algorithm": "bfs", "graph": "g", "device": "cpu", "options": {}, "milliseconds": [1.5, 2.0]}],
    }
    return [*found, encode("report", json.dumps(report).encode())]
