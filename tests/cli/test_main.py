"""The command line: the diagnosis, and the demo."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from repository import CSRC

import atos_py as atos
from atos_py.__main__ import main
from atos_py.support.disk_cache import get_cache_directory
from atos_py.tools import cuda_toolkit as toolkit
from atos_py.tools import demo, diagnosis

SMALL = ["demo", "--device", "cpu", "--graph", "road:12", "rmat:6"]


def value(name: str) -> diagnosis.Finding:
    return next(finding for finding in diagnosis.diagnose() if finding.name == name)


class TestDiagnosis:
    def test_says_where_everything_is(self, capsys):
        assert main([]) == 0
        text = capsys.readouterr().out
        for part in ("Devices", "cpu", "Versions", "numba", "Core", "libatos.so", "Caches", str(get_cache_directory())):
            assert part in text

    def test_works_as_a_module(self):
        done = subprocess.run([sys.executable, "-m", "atos_py"], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")

    def test_an_output_that_was_closed_from_the_start_is_no_error(self):
        command = f'"{sys.executable}" -m atos_py >&-'
        done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")

    def test_output_that_nobody_reads_is_no_error(self):
        command = [sys.executable, "-m", "atos_py"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            said = process.stderr.read()
        assert (process.returncode, said) == (2, "")

    def test_missing_compilers(self, monkeypatch):
        monkeypatch.setattr(diagnosis, "find_cuda", lambda: None)
        monkeypatch.setattr(diagnosis, "_find_item_sizes", lambda worker: (4,))
        monkeypatch.setenv("PATH", "")
        assert toolkit.NVCC_WHEELS in str(value("nvcc").mend)
        assert "g++" in str(value("c++").mend)
        assert "nvcc" in diagnosis.format_report()

    def test_compilers_are_not_missed_where_the_core_is_whole(self, monkeypatch):
        monkeypatch.setattr(diagnosis, "find_cuda", lambda: None)
        monkeypatch.setattr(diagnosis, "_find_item_sizes", lambda worker: diagnosis.ITEM_BYTES)
        monkeypatch.setenv("PATH", "")
        assert [(value(name).value, value(name).mend) for name in ("nvcc", "c++")] == [("not found", None)] * 2

    def test_missing_packages(self, monkeypatch):
        monkeypatch.setattr(diagnosis, "_find_installed_version", lambda package: None)
        monkeypatch.setattr(diagnosis, "_find_nvvm", lambda: None)
        for name in ("cuda-core", "libNVVM", "nvJitLink"):
            assert "cuda-core[cu13]" in str(value(name).mend)

    @pytest.mark.parametrize("there", ["nothing", "a card", "a GPU"])
    def test_what_only_a_gpu_needs_is_to_be_mended_only_with_one(self, there, monkeypatch, capsys):
        monkeypatch.setattr(diagnosis, "_find_installed_version", lambda package: None)
        monkeypatch.setattr(diagnosis, "_find_nvvm", lambda: None)
        monkeypatch.setattr(diagnosis, "find_cuda", lambda: None)
        monkeypatch.setattr(diagnosis, "_find_item_sizes", lambda worker: ())
        monkeypatch.setattr(diagnosis, "_check_caches", list)
        monkeypatch.setattr(diagnosis, "why_no_gpu", lambda: None if there == "a GPU" else "no NVIDIA driver is installed")
        monkeypatch.setattr(diagnosis, "_has_nvidia_hardware", lambda: there != "nothing")
        monkeypatch.setenv("PATH", "")
        assert main([]) == 0
        text = capsys.readouterr().out
        to_do = (
            "nothing for CPU threads; for a GPU, what the end of this list says"
            if there == "nothing"
            else "the commands at the end of this list"
        )
        assert re.match(rf"Ready: CPU backend \(\d+ cores?\)\nTo do: {to_do}\n", text)
        end = text.partition("\nTo mend\n")[2]
        if there == "nothing":
            assert not end
            assert "Nothing is missing." not in text
            end = text.partition("\nNothing is missing for CPU threads.\n\nThere is no GPU here. To use one you would need\n")[
                2
            ]
        for name in ("nvcc", "cuda-core, libNVVM, nvJitLink", "thread workers"):
            assert name in end

    def test_a_cache_that_cannot_be_used_is_to_be_mended_without_a_gpu_too(self, monkeypatch):
        monkeypatch.setattr(diagnosis, "why_no_gpu", lambda: "no NVIDIA driver is installed")
        monkeypatch.setattr(diagnosis, "_has_nvidia_hardware", lambda: False)
        monkeypatch.setattr(diagnosis, "find_cache_fault", lambda: "others can write to it")
        assert "linked tasks" in diagnosis.format_report().partition("\nTo mend\n")[2]

    def test_a_gpu_is_ready_if_nothing_of_it_is_missing(self, monkeypatch):
        found = [diagnosis.Finding("Versions", "libNVVM", "13.5")]
        monkeypatch.setattr(diagnosis, "devices", lambda: [atos.device("cpu"), atos.Device("cuda", 0)])
        assert diagnosis._find_ready(found).value.endswith("), cuda:0")
        found.append(diagnosis.Finding("Versions", "cuda-core", "absent", "pip install it"))
        assert "cuda" not in diagnosis._find_ready(found).value

    def test_nothing_is_to_do_if_all_is_there(self):
        found = [diagnosis.Finding("Versions", "numpy", "2.4")]
        assert diagnosis._find_to_do(found).value == "nothing"
        assert diagnosis.format_report([diagnosis._find_to_do(found), *found]).startswith("To do: nothing\n\nVersions\n")

    def test_linker_older_than_what_it_links(self, monkeypatch):
        monkeypatch.setattr(diagnosis, "_find_installed_version", {"nvidia-nvjitlink": "13.0.1", "nvidia-nvvm": "13.4.9"}.get)
        assert "older than the CUDA 13.4 code" in value("nvJitLink").value
        assert "--upgrade" in str(value("nvJitLink").mend)

    def test_core_for_the_cpu_alone(self, monkeypatch, tmp_path):
        (tmp_path / "libatos.so").write_bytes(b"")
        (tmp_path / "core_warp_4.fatbin").write_bytes(b"")
        monkeypatch.setattr(diagnosis, "CORE_DIR", tmp_path)
        assert value("warp workers").value == "on CPU threads; for GPUs those of items of 8, 16, 32 bytes were not built"
        assert value("cta workers").value == "on CPU threads alone"
        assert "build_core" in str(value("warp workers").mend)

    @pytest.mark.parametrize("asked", [True, False, None])
    def test_a_core_for_the_cpu_alone_says_why_there_is_no_other(self, asked, monkeypatch, tmp_path):
        """A note of an earlier build does not say it."""
        (tmp_path / "libatos.so").write_bytes(b"")
        (tmp_path / "built.json").write_text(json.dumps({} if asked is None else {"cpu_only": asked}))
        monkeypatch.setattr(diagnosis, "CORE_DIR", tmp_path)
        monkeypatch.setattr(diagnosis, "why_no_gpu", lambda: "this build is for the CPU alone")
        why = {True: ", as ATOS_CPU_ONLY=1 asked when it was built", False: ", since nvcc was not found when it was built"}
        assert value("driver").value == f"no GPU: this build is for the CPU alone{why.get(asked, '')}"
        assert ("without ATOS_CPU_ONLY=1" in str(value("driver").mend)) == (asked is True)
        assert value("driver").mend == value("cta workers").mend

    def test_a_build_without_cuda_gives_no_false_reason(self):
        """What else is missing where it was built, the core does not know."""
        said = re.search(r'kAbsent = "(.*)"', (CSRC / "cuda/unavailable.cpp").read_text())
        assert said is not None
        assert said[1] == "this build is for the CPU alone"

    def test_cache(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "new"))
        assert value("linked tasks").value == f"{tmp_path / 'new'}, 0 entries, 0.0 MiB"
        (tmp_path / "new").mkdir()
        (tmp_path / "new").chmod(0o777)
        assert "because others can write to" in value("linked tasks").value
        (tmp_path / "new").chmod(0o700)
        assert value("linked tasks").mend is None
        monkeypatch.setattr(diagnosis.os, "access", lambda path, mode: False)
        assert "ATOS_CACHE_DIR" in str(value("linked tasks").mend)

    def test_a_card_without_a_driver(self, monkeypatch):
        monkeypatch.setattr(diagnosis, "why_no_gpu", lambda: "no NVIDIA driver is installed")
        monkeypatch.setattr(diagnosis, "_has_nvidia_hardware", lambda: True)
        assert "driver" in str(value("driver").mend)
        monkeypatch.setattr(diagnosis, "_has_nvidia_hardware", lambda: False)
        assert value("driver").mend is None


class TestDemo:
    def test_every_row_is_verified(self, capsys):
        assert main(SMALL) == 0
        heading, *rows, last = capsys.readouterr().out.splitlines()
        assert heading == demo.HEADING
        assert len(rows) == 2 * 3 * 4
        assert all(row.endswith("  yes") for row in rows)
        assert len({row.index("cpu") for row in rows}) == 1
        assert last.startswith("24 of 24 results are right")

    def test_a_wrong_result_fails(self, monkeypatch, capsys):
        def search(graph, source, **options):
            result = atos.bfs(graph, source, **options)
            if options["worker"] == "warp":
                result.depth[source] = 1
            return result

        monkeypatch.setattr(demo.measure_rows, "__defaults__", (None, search))
        assert main(SMALL) == 1
        rows = capsys.readouterr().out.splitlines()[1:-1]
        assert sum("NO: depth[" in row for row in rows) == 2 * 4

    @pytest.mark.gpu
    @pytest.mark.skipif(len(atos.devices()) < 2, reason="there is no GPU")
    def test_on_a_gpu(self, capsys):
        assert main(["demo", "--device", "cuda", "--graph", "road:200", "rmat:12"]) == 0


class TestProgramName:
    def usage(self, capsys, *arguments):
        with pytest.raises(SystemExit, match="0"):
            main(*arguments)
        return capsys.readouterr().out

    @pytest.mark.parametrize(
        ("called", "program"),
        [("/usr/bin/atos", "atos"), ("/x/atos_py/__main__.py", "python -m atos_py"), ("/usr/bin/atos-2", "atos-2")],
    )
    def test_usage_and_examples_show_how_the_program_was_called(self, called, program, capsys, monkeypatch):
        monkeypatch.setattr(sys, "argv", [called, "bfs", "--help"])
        text = self.usage(capsys)
        assert text.startswith(f"usage: {program} bfs ")
        assert f"\n  {program} bfs roads.gr.gz --out depth.npy\n" in text
        monkeypatch.setattr(sys, "argv", [called, "--help"])
        assert re.search(rf"\n  {re.escape(program)} COMMAND --help  ", self.usage(capsys))

    def test_a_call_from_a_program_is_none_from_a_shell(self, capsys, monkeypatch):
        monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest"])
        assert self.usage(capsys, ["--help"]).startswith("usage: atos ")


class TestErrors:
    def test_one_line_and_exit_code_2(self, capsys):
        assert main(["demo", "--device", "cuda:99"]) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("atos_py: there is no device 'cuda:99'")
        assert captured.err.count("\n") == 1

    def test_help_teaches(self, capsys):
        for arguments, word in (["--help"], "examples:"), (["demo", "--help"], "certificate"):
            with pytest.raises(SystemExit, match="0"):
                main(arguments)
            assert word in capsys.readouterr().out


class TestToolkit:
    @pytest.fixture
    def root(self, tmp_path):
        for part in ("bin/nvcc", "include/cuda.h"):
            (tmp_path / part).parent.mkdir()
            (tmp_path / part).write_text("#define CUDA_VERSION 13000\n")
        return tmp_path

    def test_named(self, root, monkeypatch):
        monkeypatch.setenv("CUDA_HOME", str(root))
        assert toolkit.find_cuda() == root

    def test_none_hides_the_machines(self, root, monkeypatch):
        monkeypatch.setenv("CUDA_HOME", "none")
        monkeypatch.setattr(toolkit.sysconfig, "get_path", lambda name: str(root))
        monkeypatch.setattr(toolkit.sys, "path", [])
        assert toolkit.find_cuda() is None
        (root / "nvidia").mkdir()
        (root / "nvidia" / "cu13").symlink_to(root)
        assert toolkit.find_cuda() == root / "nvidia" / "cu13"

    def test_another_major_version_is_passed_over(self, root, monkeypatch):
        monkeypatch.setenv("CUDA_HOME", str(root))
        (root / "include" / "cuda.h").write_text("#define CUDA_VERSION 12090\n")
        assert toolkit.find_cuda() != root
