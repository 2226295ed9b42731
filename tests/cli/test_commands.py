"""The commands: the algorithms verify and save what they find, and options mean the same everywhere."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import atos_py as atos
from atos_py.__main__ import main
from atos_py.algorithms import registry
from atos_py.cli import find_commands, info
from atos_py.cli.options import make_progress_bar

GRAPH = "rmat:7:8"
COMMANDS = find_commands()


def run(capsys, *arguments):
    """Run a command on the CPU with its JSON on standard output; return the exit code, that, and what else was said."""
    code = main([*arguments, "--device", "cpu", "--json", "-"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out), captured.err


def actions(name):
    parser = argparse.ArgumentParser()
    COMMANDS[name].add_arguments(parser)
    return {option: action for action in parser._actions for option in action.option_strings}


class TestAlgorithms:
    @pytest.mark.parametrize("algorithm", registry.find_algorithms())
    def test_verified_printed_and_told(self, algorithm, capsys):
        code, told, said = run(capsys, algorithm, GRAPH)
        assert code == 0
        assert said.splitlines()[0] == f"{GRAPH}: 128 vertices, {told['graph']['edges']:,} edges"
        assert said.splitlines()[-1].endswith("; verified")
        assert (told["algorithm"], told["verified"], told["failure"]) == (algorithm, True, "")
        assert told["stats"]["tasks_run"] > 0
        assert told["stats"]["profile"]["run"] > 0

    def test_text_alone_goes_to_standard_output(self, capsys):
        assert main(["bfs", GRAPH, "--device", "cpu"]) == 0
        captured = capsys.readouterr()
        assert "; verified" in captured.out
        assert captured.err == ""

    def test_bfs(self, tmp_path, capsys):
        graph = atos.generate.rmat(7, 8, device="cpu")
        out = tmp_path / "tree.npz"
        _, told, _ = run(capsys, "bfs", GRAPH, "--source", "3", "5", "--parents", "--out", str(out))
        with np.load(out) as found:
            atos.verify_bfs(graph, [3, 5], found["depth"], found["parent"])
            assert told["result"]["reached"] == np.count_nonzero(found["depth"] != atos.UNREACHED)
            assert told["result"]["levels"] == found["depth"][found["depth"] != atos.UNREACHED].max() + 1

    def test_pagerank(self, tmp_path, capsys):
        out = tmp_path / "rank.npy"
        _, told, _ = run(capsys, "pagerank", GRAPH, "--tolerance", "1e-3", "--dtype", "float64", "--out", str(out))
        rank = np.load(out)
        assert rank.dtype == np.float64
        assert told["result"]["error"] <= told["result"]["error bound"] <= 1e-3
        assert list(map(int, told["result"]["highest ranks"])) == np.argsort(-rank, kind="stable")[:5].tolist()

    def test_color(self, tmp_path, capsys):
        out = tmp_path / "color.npy"
        _, told, _ = run(capsys, "color", GRAPH, "--order", "degree", "--out", str(out))
        colors = np.load(out)
        atos.verify_coloring(atos.generate.rmat(7, 8, device="cpu"), colors)
        assert told["result"]["colors"] == colors.max() + 1

    def test_a_file_is_a_graph_too(self, tmp_path, capsys):
        atos.generate.road(9, device="cpu").save(tmp_path / "tiny.npz")
        code, told, _ = run(capsys, "bfs", str(tmp_path / "tiny.npz"))
        assert (code, told["graph"]["vertices"]) == (0, 81)

    def test_options_of_a_launch(self, capsys):
        given = ["--worker", "warp", "--fetch-size", "4", "--num-blocks", "2", "--persistent", "0", "--barrier", "1"]
        _, told, _ = run(capsys, "bfs", GRAPH, *given)
        stats = told["stats"]
        assert [stats[name] for name in ("worker", "fetch_size", "num_blocks", "persistent", "barrier")] == [
            "warp", 4, 2, False, True,
        ]  # fmt: skip

    def test_tuned_settings(self, capsys, monkeypatch):
        monkeypatch.setattr("atos_py.cli.algorithm.tuned", lambda name, graph: {"fetch_size": 16, "num_blocks": 1})
        _, told, _ = run(capsys, "bfs", GRAPH, "--tuned", "--fetch-size", "64")
        assert (told["stats"]["fetch_size"], told["stats"]["num_blocks"]) == (64, 1)

    def test_a_picture_of_the_run(self, tmp_path, capsys):
        pytest.importorskip("matplotlib")
        code, told, _ = run(capsys, "bfs", "road:100:0.9", "--plot", str(tmp_path / "run.png"))
        assert code == 0
        assert len(told["stats"]["trace"]["milliseconds"]) > 1
        assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")

    def test_a_bar(self, capsys):
        assert run(capsys, "bfs", GRAPH, "--progress")[0] == 0

    @pytest.fixture
    def wrong(self, monkeypatch):
        true = atos.bfs

        def search(graph, source, **options):
            result = true(graph, source, **options)
            result.depth[int(np.atleast_1d(source)[0])] = 1
            return result

        monkeypatch.setitem(registry._registered, "bfs", replace(registry.find_algorithms()["bfs"], run=search))

    @pytest.mark.usefixtures("wrong")
    def test_a_wrong_result_fails_and_is_not_saved(self, tmp_path, capsys):
        code, told, said = run(capsys, "bfs", GRAPH, "--source", "3", "--out", str(tmp_path / "depth.npy"))
        assert code == 1
        assert told["verified"] is False
        assert "depth[3] is 1" in told["failure"]
        assert "NOT RIGHT: depth[3]" in said
        assert not (tmp_path / "depth.npy").exists()

    @pytest.mark.usefixtures("wrong")
    def test_nobody_looks_if_told_so(self, capsys):
        code, told, said = run(capsys, "bfs", GRAPH, "--no-verify")
        assert (code, told["verified"]) == (0, None)
        assert said.rstrip().endswith("; not verified")


class TestGraphFiles:
    """A file of edges between vertices with large ids: in one direction or both, and a loop."""

    EDGES = ((100, 7), (7, 100), (7, 900000), (7, 7), (55, 900000))

    @pytest.fixture
    def path(self, tmp_path):
        path = tmp_path / "far.txt"
        path.write_text("".join(f"{u} {v}\n" for u, v in self.EDGES))
        return str(path)

    def test_results_by_label(self, path, tmp_path, capsys):
        out = tmp_path / "tree.npz"
        changes = ["--symmetrize", "--simplify", "--renumber"]
        code, told, said = run(capsys, "bfs", path, *changes, "--source", "100", "--parents", "--out", str(out))
        assert (code, told["graph"]) == (0, {"name": path, "vertices": 4, "edges": 6})
        assert "empty" not in said
        with np.load(out) as found:
            assert found["labels"].tolist() == [7, 55, 100, 900000]
            assert dict(zip(found["labels"].tolist(), found["depth"].tolist(), strict=True)) == {100: 0, 7: 1, 900000: 2, 55: 3}
            assert found["labels"][found["parent"]].tolist() == [100, 900000, 100, 7]

    def test_options_of_algorithms_are_labels(self, path, tmp_path, capsys):
        out = str(tmp_path / "distance.npz")
        changes = ["--symmetrize", "--renumber"]
        _, told, _ = run(capsys, "shortest_path_lengths", path, *changes, "--sources", "900000,100", "--out", out)
        assert told["options"]["sources"] == [900000, 100]
        with np.load(out) as found:
            assert found["distance"][0].tolist() == [1, 1, 2, 0]
        _, told, _ = run(capsys, "bfs", path, *changes, "--source", "100", "--target", "900000")
        assert told["options"]["target"] == 900000
        assert run(capsys, "betweenness", path, *changes, "--sources", "2")[0] == 0  # which says how many
        _, told, said = run(capsys, "pagerank", path, *changes)
        assert sorted(map(int, told["result"]["highest ranks"])) == [7, 55, 100, 900000]
        assert "900000 (" in said
        assert main(["bfs", path, "--renumber", "--source", "0", "--device", "cpu"]) == 2
        assert "no vertex has the label 0" in capsys.readouterr().err

    def test_labels_that_were_saved_count_too(self, path, tmp_path, capsys):
        atos.Graph.load(path, renumber=True, device="cpu").save(tmp_path / "far.npz")
        assert run(capsys, "bfs", str(tmp_path / "far.npz"), "--source", "55")[1]["result"]["reached"] == 2

    def test_every_command(self, path, tmp_path, capsys):
        changes = ["--graph", path, "--symmetrize", "--simplify", "--renumber"]
        _, told, _ = run(capsys, "bench", "--algorithm", "bfs", *changes, "--source", "55", "--repeat", "1")
        name = f"{path} --symmetrize --simplify --renumber"
        assert [row["graph"] for row in told["rows"]] == [told["graphs"][0]["graph"]] == [name]
        assert told["rows"][0]["result"] == {"reached": 4, "levels": 4}
        code, told, _ = run(capsys, "tune", "--algorithm", "bfs", *changes, "--source", "55", "--budget", "0.01")
        assert (code, told["again"]["defaults"]["failure"]) == (0, "")
        code, told, _ = run(capsys, "demo", *changes)
        assert (code, {row["stats"]["device"] for row in told["rows"]}) == (0, {"cpu"})

    def test_a_warning_is_a_line(self, path, capsys):
        assert main(["bfs", path, "--source", "100", "--device", "cpu"]) == 0
        line = capsys.readouterr().err
        assert line.startswith(f"atos_py: the edges of '{path}' name 4 vertices, but the largest id, 900000, makes 900,001,")
        assert line.count("\n") == 1

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            (["bfs", "far.txt", "--renumber", "--out", "depth.npy"], "with --renumber, --out names an .npz file"),
            (["bfs", GRAPH, "--renumber"], f"'{GRAPH}' is no file: symmetrize, simplify and renumber are for those"),
            (["bench", "--graph", GRAPH, "--simplify"], f"'{GRAPH}' is no file"),
            (["tune", "--algorithm", "bfs", "--graph", GRAPH, "--symmetrize"], f"'{GRAPH}' is no file"),
            (["demo", "--symmetrize"], "is no file"),
            (["reproduce", "--out", "x", "--symmetrize"], "--symmetrize is for graph files: name them after --graph"),
        ],
    )
    def test_what_is_no_file_is_not_changed(self, command, said, capsys):
        assert main([*command, "--device", "cpu"]) == 2
        assert said in capsys.readouterr().err


class TestJson:
    def test_info(self, capsys):
        assert main(["info", "--json", "-"]) == 0
        captured = capsys.readouterr()
        assert {finding["section"] for finding in json.loads(captured.out)["findings"]} >= {"Devices", "Versions", "Core"}
        assert "Devices" in captured.err

    def test_demo(self, capsys):
        code, told, said = run(capsys, "demo", "--graph", "road:8:1")
        assert code == 0
        assert len(told["rows"]) == 12
        assert all(row["stats"]["tasks_run"] >= 64 and not row["failure"] for row in told["rows"])
        assert "12 of 12 results are right" in said

    def test_bench(self, capsys):
        code, told, said = run(capsys, "bench", "--algorithm", "bfs", "--graph", "road:8:1", "--repeat", "1")
        assert code == 0
        assert told["rows"][0]["result"]["reached"] == 64
        assert "road:8:1: 64 vertices" in said

    def test_tune(self, capsys, monkeypatch, tmp_path):
        monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path))
        code, told, _ = run(capsys, "tune", "--algorithm", "bfs", "--graph", "road:8:1", "--budget", "0.2")
        assert code == 0
        assert told["again"]["best"]["options"] == told["best"]
        assert told["table"]

    def test_to_a_file(self, tmp_path, capsys):
        assert main(["color", GRAPH, "--device", "cpu", "--json", str(tmp_path / "c.json")]) == 0
        assert json.loads((tmp_path / "c.json").read_text())["verified"] is True
        assert "; verified" in capsys.readouterr().out


class TestOptions:
    def test_the_same_name_means_the_same_everywhere(self):
        texts: dict[str, set[str]] = {}
        for name in COMMANDS:
            for option, action in actions(name).items():
                if option in ("--worker", "--fetch-size", "--num-blocks", "--num-threads", "--persistent", "--barrier",
                              "--tuned", "--json", "--tolerance", "--dtype", "--find", "--order"):  # fmt: skip
                    texts.setdefault(option, set()).add(str(action.help))
        assert len(texts) == 12
        assert all(len(said) == 1 for said in texts.values())

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_json_and_help_with_examples(self, name, capsys):
        assert "--json" in actions(name)
        with pytest.raises(SystemExit, match="0"):
            main([name, "--help"])
        text = capsys.readouterr().out
        assert f"  atos {name}" in text.partition("examples:")[2]
        assert len(text) > 300

    @pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"info"}))
    def test_every_command_but_info_takes_a_device_and_a_graph(self, name):
        parser = argparse.ArgumentParser()
        COMMANDS[name].add_arguments(parser)
        assert {"device", "graph"} <= {action.dest for action in parser._actions}

    @pytest.mark.parametrize(
        "bad",
        [
            ["bfs", GRAPH, "--persistent", "yes"],
            ["bfs", GRAPH, "--worker", "grid"],
            ["bfs"],
            ["nothing"],
        ],
    )
    def test_bad_usage_is_exit_code_2(self, bad, capsys):
        with pytest.raises(SystemExit, match="2"):
            main(bad)
        assert "usage: " in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("bad", "said"),
        [
            (["bfs", GRAPH, "--source", "128"], "source 128 is not a vertex"),
            (["bfs", GRAPH, "--out", "depth.txt"], "names an .npy or .npz file"),
            (["bfs", GRAPH, "--out", "/nothing/depth.npy"], "cannot write"),
            (["reproduce", "--graph", GRAPH, "--out", __file__], "cannot make directory"),
            (["reproduce", "--graph", GRAPH, "--out", "x\0"], "cannot make directory"),
            (["bfs", GRAPH, "--json", "/nothing/x.json"], "there is no directory '/nothing'"),
            (["bench", "--algorithm", "chain", "--size", "99999999999"], "--size must be less than 4294967296"),
            (["pagerank", GRAPH, "--tolerance", "0"], "tolerance must be"),
            (["color", "rmat:x"], "names no graph"),
            (["color", "nothing.gr"], "cannot read graph file"),
        ],
    )
    def test_what_cannot_be_done_is_a_line_and_exit_code_2(self, bad, said, capsys):
        assert main([*bad, "--device", "cpu"]) == 2
        line = capsys.readouterr().err
        assert line.startswith("atos_py: ")
        assert said in line
        assert line.count("\n") == 1

    @pytest.mark.parametrize(
        ("command", "said"),
        [
            (["bfs", GRAPH, "--plot", "x.foo"], "names no kind of picture; there are .avif, "),
            (["bfs", GRAPH, "--plot", "/nothing/x.png"], "there is no directory '/nothing'"),
            (["bfs", GRAPH, "--plot", "."], "it is a directory"),
            (["bfs", GRAPH, "--out", "/nothing/x.npy"], "there is no directory '/nothing'"),
            (["color", GRAPH, "--json", "/"], "it is a directory"),
            (["pagerank", GRAPH, "--json", "x\0"], "there is a null character in its name"),
            (["bench", "--graph", GRAPH, "--markdown", "/nothing/x.md"], "there is no directory '/nothing'"),
            (["tune", "--algorithm", "bfs", "--graph", GRAPH, "--csv", "/nothing/x.csv"], "there is no directory '/nothing'"),
            (["tune", "--algorithm", "bfs", "--graph", GRAPH, "--draw", "x.foo"], "there are .avif, "),
            (["demo", "--graph", GRAPH, "--json", "/nothing/x.json"], "there is no directory '/nothing'"),
            (["reproduce", "--graph", GRAPH, "--out", "x", "--json", "/"], "it is a directory"),
        ],
    )
    def test_what_could_not_be_written_is_refused_before_anything_runs(self, command, said, capsys, monkeypatch):
        figures = pytest.importorskip("atos_py.tools.figures")
        kinds = {"svg": "", "avif": "", "png": ""}
        monkeypatch.setattr(figures.Figure().canvas.__class__, "get_supported_filetypes", classmethod(lambda cls: kinds))
        monkeypatch.setattr("atos_py.runtime.queue_launches.launch_once", None)
        assert main([*command, "--device", "cpu"]) == 2
        captured = capsys.readouterr()
        assert said in captured.err
        assert captured.err.count("\n") == 1
        assert captured.out == ""

    def test_a_file_without_permission_is_refused_before_anything_runs(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr("atos_py.cli.options.os.access", lambda path, mode: False)
        assert main(["bfs", GRAPH, "--device", "cpu", "--json", str(tmp_path / "x.json")]) == 2
        assert "permission denied" in capsys.readouterr().err

    def test_a_picture_is_refused_without_matplotlib(self, capsys, monkeypatch):
        monkeypatch.setitem(sys.modules, "atos_py.tools.figures", None)
        assert main(["bfs", GRAPH, "--device", "cpu", "--plot", "x.png"]) == 2
        assert "pip install matplotlib" in capsys.readouterr().err

    def test_a_full_disk_is_a_line(self, capsys):
        assert main(["info", "--json", "/dev/full"]) == 2
        assert capsys.readouterr().err == "atos_py: cannot write '/dev/full': No space left on device\n"

    def test_json_to_an_output_that_was_closed_from_the_start(self):
        command = f'"{sys.executable}" -m atos_py info --json - >&-'
        done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr

    def test_ctrl_c_is_a_line(self, capsys, monkeypatch):
        def stopped(options):
            raise KeyboardInterrupt

        monkeypatch.setattr(info, "command", stopped)
        assert main(["info"]) == 130
        assert capsys.readouterr().err == "atos_py: interrupted\n"

    @pytest.mark.parametrize("graph", [GRAPH, "tiny.npz"])
    def test_a_number_of_threads_that_numba_refuses(self, graph, tmp_path):
        atos.generate.road(9, device="cpu").save(tmp_path / "tiny.npz")
        command = [sys.executable, "-m", "atos_py", "bfs", graph, "--device", "cpu"]
        path = os.pathsep.join([str(Path(atos.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = os.environ | {"NUMBA_NUM_THREADS": "0", "PYTHONPATH": path}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("atos_py: Numba does not import: ")
        assert "NUMBA_NUM_THREADS is to be unset, or a number from 1 on (got '0')" in done.stderr
        assert done.stderr.count("\n") == 1

    def test_progress_without_tqdm(self, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "tqdm", None)
        assert list(make_progress_bar()([1, 2], "steps", 2)) == [1, 2]
        assert capsys.readouterr().err == "steps (2 settings)\n"
