"""The cache on disk: what is trusted, what is not, and what goes when there is too much."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atos_py.compile import host_kernels as parallel
from atos_py.support import disk_cache as cache
from atos_py.support.disk_cache import find_cache_fault, get_cache_directory, read_entry, write_entry

NAME = "0123456789abcdef" * 4
PARTS = [b"code", b"", b"facts" * 100]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    """A cache directory of the test's own."""
    path = tmp_path / "cache"
    monkeypatch.setenv("ATOS_CACHE_DIR", str(path))
    return path


@pytest.fixture
def entry(directory) -> Path:
    write_entry(NAME, PARTS)
    assert read_entry(NAME) == PARTS
    return directory / NAME


def test_where_it_is(directory, tmp_path, monkeypatch):
    assert get_cache_directory() == directory
    monkeypatch.delenv("ATOS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert get_cache_directory() == tmp_path / "atos_py"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert get_cache_directory() == Path.home() / ".cache" / "atos_py"


def test_nothing_is_there_at_first(directory):
    assert read_entry(NAME) is None
    assert find_cache_fault() is None
    assert not directory.exists()


def test_an_entry_comes_back(entry):
    assert [path.name for path in entry.parent.iterdir()] == [NAME]
    write_entry(NAME, [b"another"])
    assert read_entry(NAME) == [b"another"]


def another_users(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, 65534, 65534)


def replaced_by(make: object) -> object:
    def damage(path: Path) -> None:
        path.rename(path.with_name("aside"))
        make(path)

    return damage


UNTRUSTED = {
    "another user's": another_users,
    "writable by the group": lambda path: path.chmod(0o620),
    "writable by all": lambda path: path.chmod(0o602),
    "a link": replaced_by(lambda path: path.symlink_to(path.with_name("aside"))),
    "a pipe": replaced_by(os.mkfifo),
    "a directory": replaced_by(Path.mkdir),
    "in a directory of the group": lambda path: path.parent.chmod(0o770),
    "in a directory of all": lambda path: path.parent.chmod(0o777),
    "in a shared directory": lambda path: path.parent.chmod(0o1777),
    "in another user's directory": lambda path: another_users(path.parent),
}


@pytest.mark.parametrize("change", UNTRUSTED.values(), ids=UNTRUSTED)
def test_what_others_can_have_written_is_not_read(entry, change):
    change(entry)
    assert read_entry(NAME) is None


@pytest.mark.parametrize("change", [change for name, change in UNTRUSTED.items() if name.startswith("in ")])
def test_nothing_is_kept_where_others_can_write(entry, change):
    change(entry)
    before = entry.read_bytes()
    write_entry(NAME, [b"another"])
    assert entry.read_bytes() == before
    assert find_cache_fault() == f"others can write to {entry.parent}"


def test_a_hard_link_under_another_name_is_not_read(entry):
    other = NAME[::-1]
    os.link(entry, entry.with_name(other))
    assert read_entry(other) is None


def test_what_is_in_the_way_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("ATOS_CACHE_DIR", str(tmp_path / "file"))
    assert find_cache_fault() == "Not a directory"
    write_entry(NAME, PARTS)
    assert read_entry(NAME) is None


@given(st.data())
@settings(deadline=None)
def test_no_damage_is_taken_for_an_entry(tmp_path_factory, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATOS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        write_entry(NAME, PARTS)
        path = get_cache_directory() / NAME
        content = path.read_bytes()
        changed = data.draw(
            st.one_of(
                st.integers(0, len(content) - 1).map(lambda end: content[:end]),
                st.binary(min_size=1, max_size=20).map(lambda more: content + more),
                st.tuples(st.integers(0, len(content) - 1), st.integers(1, 255)).map(
                    lambda flip: content[: flip[0]] + bytes([content[flip[0]] ^ flip[1]]) + content[flip[0] + 1 :]
                ),
                st.binary(max_size=100),
            )
        )
        path.write_bytes(changed)
        assert read_entry(NAME) is None


@pytest.mark.parametrize(("mode", "kept"), [(0o700, True), (0o777, False)])
def test_kernels_of_the_host_are_kept_only_where_nobody_else_can_write(directory, mode, kept):
    """Those which build graphs, say: not beside the source, where they would outlive the package."""
    code = """
import os
from pathlib import Path
import atos_py
from atos_py.graph.csr import build_csr, chunk_edges
os.umask(0)
found = lambda: set(Path(atos_py.__file__).parent.rglob("*.nbi"))
before = found()
build_csr(chunk_edges([0], [0]).chunks, 1)
assert found() == before
"""
    directory.mkdir()
    directory.chmod(mode)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    entries = list(directory.iterdir())
    assert bool(entries) == kept
    assert all(stat.S_IMODE(entry.stat().st_mode) == 0o600 and len(entry.name) == 64 for entry in entries)


def add_one(x):
    return x + 1


def hits(kernel: Any = add_one, result: int = 2) -> int:
    """Run a kernel as a new process would; how often its code came from the cache."""
    parallel.compile_kernel.cache_clear()
    parallel._compile_helper.cache_clear()
    compiled: Any = parallel.compile_kernel(kernel)
    assert compiled(1) == result
    return sum(compiled.stats.cache_hits.values())


def double(x):
    return 2 * x


def triple(x):
    return double(x) + x


scaled = double


def add_scaled(x):
    return scaled(x) + 1


def test_functions_that_a_kernel_calls_are_compiled_with_it_and_name_its_entry(directory, monkeypatch):
    assert [hits(add_scaled, 3), hits(add_scaled, 3)] == [0, 1]
    assert len(list(directory.iterdir())) == 1
    monkeypatch.setitem(globals(), "scaled", triple)
    assert [hits(add_scaled, 4), hits(add_scaled, 4)] == [0, 1]
    monkeypatch.setitem(globals(), "double", lambda x: 4 * x)
    assert [hits(add_scaled, 6), hits(add_scaled, 6)] == [0, 1]


DAMAGES = {
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "altered": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"?"),
    "no code": lambda path: write_entry(path.name, [b"garbage"]),
    "nothing": lambda path: write_entry(path.name, []),
    **{name: change for name, change in UNTRUSTED.items() if name in ("writable by all", "a link")},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_kernel_whose_entry_is_damaged_is_compiled_and_kept_anew(directory, damage):
    assert [hits(), hits()] == [0, 1]
    (entry,) = directory.iterdir()
    damage(entry)
    assert [hits(), hits()] == [0, 1]


def test_kernels_of_the_host_need_no_cache(directory):
    directory.parent.joinpath("file").write_text("in the way")
    directory.symlink_to(directory.parent / "file")
    assert [hits(), hits()] == [0, 0]


def test_what_was_used_least_recently_goes(directory, monkeypatch):
    names = [f"{number:064x}" for number in range(6)]
    size = 1000
    for number, name in enumerate(names):
        write_entry(name, [bytes(size)])
        os.utime(directory / name, (number + 1, number + 1))
    (directory / "settings.json").write_bytes(bytes(10 * size))  # not an entry, so neither counted nor removed
    os.utime(directory / "settings.json", (0, 0))
    unfinished = directory / f".{names[0]}.{1:016x}.part"  # of a process that was killed
    unfinished.write_bytes(bytes(size))
    os.utime(unfinished, (0, 0))
    assert read_entry(names[0]) is not None  # so it is the youngest
    monkeypatch.setattr(cache, "_MOST_BYTES", 4 * (size + 50))
    write_entry(NAME, [bytes(size)])
    assert {path.name for path in directory.iterdir()} == {NAME, names[0], names[4], names[5], "settings.json"}


def test_threads_and_pruning_at_once(directory, monkeypatch):
    """Each entry that is read is right, although others write and remove entries meanwhile."""
    monkeypatch.setattr(cache, "_MOST_BYTES", 3000)
    wrong: list[object] = []

    def work(seed: int) -> None:
        for step in range(60):
            number = (seed * 31 + step * 7) % 10
            write_entry(f"{number:064x}", [bytes([number]) * 900])
            found = read_entry(f"{(number + step) % 10:064x}")
            if found not in (None, [bytes([(number + step) % 10]) * 900]):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert 1 <= len(list(directory.iterdir())) <= 4
