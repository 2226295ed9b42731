"""What editors complete: names of workers, results and elements by jedi, and their types by pyright where there is one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

HEAD = """\
from __future__ import annotations

import atos_py as atos

graph = atos.generate.road(3, 1.0)
queue = atos.Queue(10)
found = atos.bfs(graph, 0)


@atos.task
def visit(worker: atos.Worker, v, depth):
    """

# What is written, and names that are offered then, among others.
COMPLETED = [
    ("worker.", {"rank", "size", "push", "push_min", "arrive", "split", "sync", "group", "scratch"}),
    ("worker.group.", {"rank", "size", "split", "shuffle"}),
    ("worker.group(8).", {"rank", "size", "split", "shuffle"}),
    ("found.", {"depth", "parent", "stats", "num_reached", "reached"}),
    ("found.depth.", {"to_numpy", "tolist", "shape", "dtype", "device"}),
    ("found.depth[0].", {"item", "dtype", "tolist"}),
    ("found.depth[0:2].", {"sum", "tolist", "shape"}),
    ("found.stats.", {"tasks_run", "milliseconds"}),
    ("atos.pagerank(graph).rank.", {"to_numpy", "tolist"}),
    ("atos.connected_components(graph).label.", {"to_numpy", "tolist"}),
    ("graph.subgraph([0])[1].", {"to_numpy", "tolist"}),
    ("graph.transpose().", {"indptr", "edge_arrays", "labels", "to_networkx"}),
    ("graph.edge_arrays['toll'].", {"to_numpy", "tolist"}),
    ("queue.launch_cta(visit, found.depth).", {"tasks_run", "rounds"}),
    ("queue.start(visit).", {"push", "close", "wait"}),
    ("atos.bfs(graph, 0, par", {"parents="}),
]


@pytest.fixture(scope="module")
def jedi(tmp_path_factory):
    """Jedi, with a cache that no other process reads while this one writes it."""
    module = pytest.importorskip("jedi")
    module.settings.cache_directory = tmp_path_factory.mktemp("jedi")
    return module


@pytest.mark.parametrize(("written", "names"), COMPLETED, ids=[written for written, _ in COMPLETED])
def test_names_that_jedi_offers(jedi, written: str, names: set[str]) -> None:
    script = jedi.Script(HEAD + written, project=jedi.Project(ROOT))
    assert names - {each.name for each in script.complete()} == set()


# Expressions and their types. An array of a library has members that ours lack.
TYPES = {
    "worker.rank": "int",
    "worker.group.rank": "int",
    "worker.group(8)": "Group",
    "worker.split(3)": "range",
    "found": "BFSResult",
    "found.depth": "AnyArray",
    "found.parent": "AnyArray",
    "found.depth.shape": "tuple[int, ...]",
    "found.depth.cuda()": "Any",
    "found.depth[0]": "Element",
    "found.depth[0:2]": "ndarray[tuple[Any, ...], dtype[Any]]",
    "found.depth[0:2].dtype": "dtype[Any]",
    "atos.zeros(3)[1, 2]": "Element",
    "graph.subgraph(found.depth)[1]": "AnyArray",
    "graph.edge_arrays['toll']": "Array",
    "queue.launch_cta(visit, found.depth, barrier=True)": "LaunchStats",
}


def test_types_that_pyright_tells(tmp_path: Path) -> None:
    name = next((name for name in ("basedpyright", "pyright") if importlib.util.find_spec(name)), None)
    if name is None:
        pytest.skip("neither basedpyright nor pyright is installed")
    lines = [f"    reveal_type({expression})\n" for expression in TYPES]
    program = tmp_path / "program.py"
    program.write_text(HEAD.rstrip(" ") + "".join(lines) + "    worker.pusch(v)\n    queue.launch_cta(visit, barier=True)\n")
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"include": ["program.py"], "extraPaths": ["{ROOT}"], "typeCheckingMode": "standard"}}'
    )
    command = [sys.executable, "-m", name, "-p", tmp_path, "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    told = re.findall(r'Type of "(.*)" is "(.*)"', done.stdout)
    assert dict(told) == TYPES, done.stdout
    assert len(re.findall(r" - error: ", done.stdout)) == 2, done.stdout
    assert '"pusch" for class "Worker"' in done.stdout
    assert 'No parameter named "barier"' in done.stdout
