"""Files that are written whole or not at all, and what may lie in the way of that."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from atos_py.errors import FileWriteError, MissingFileError
from atos_py.support import atomic_files as files
from atos_py.support.atomic_files import open_regular, replacing


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    return path


def write(path: Path, content: bytes) -> None:
    with replacing(path, "test file") as file:
        file.write(content)


def test_a_file_is_replaced(path):
    write(path, b"after")
    assert path.read_bytes() == b"after"
    assert os.listdir(path.parent) == ["file"]


def test_an_error_leaves_what_was_there(path):
    def fail() -> None:
        with replacing(path, "test file") as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert path.read_bytes() == b"before"
    assert os.listdir(path.parent) == ["file"]


def test_a_link_is_replaced_and_not_followed(path):
    link = path.with_name("link")
    link.symlink_to(path)
    write(link, b"after")
    assert path.read_bytes() == b"before"
    assert not link.is_symlink()
    assert link.read_bytes() == b"after"


def test_permissions_stay(path):
    path.chmod(0o640)
    write(path, b"after")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"after", 0o640)


def test_a_pipe_is_left_alone(path):
    pipe = path.with_name("pipe")
    os.mkfifo(pipe)
    with pytest.raises(FileWriteError, match="no regular file"):
        write(pipe, b"after")
    assert pipe.is_fifo()
    assert sorted(os.listdir(path.parent)) == ["file", "pipe"]


KILLED = """
import os, signal, sys
from pathlib import Path
from atos_py.support.atomic_files import replacing
with replacing(Path(sys.argv[1]), "test file") as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed(path):
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, path], check=False)
        parts = [part for part in os.listdir(path.parent) if part != "file"]
        assert len(parts) == 1
    path.with_name(".other.0123456789abcdef.part").touch()
    path.with_name(".file.notes.part").touch()  # not of ours
    write(path, b"after")
    assert path.read_bytes() == b"after"
    assert sorted(os.listdir(path.parent)) == [".file.notes.part", ".other.0123456789abcdef.part", "file"]


def test_of_two_that_write_at_once_the_last_one_stays(path):
    with replacing(path, "test file") as first:
        first.write(b"first")
        with replacing(path, "test file") as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert os.listdir(path.parent) == ["file"]


def test_a_new_file_that_was_taken_for_a_left_one_is_made_again(path, monkeypatch):
    """Between its making and its lock another writer may remove it."""
    names: list[str] = []

    def lock(file, operation):
        parts = [part for part in os.listdir(path.parent) if part.endswith(".part")]
        names.extend(parts)
        if len(names) == 1:
            path.with_name(parts[0]).unlink()
        fcntl.flock(file, operation)

    locks = SimpleNamespace(flock=lock, LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB)
    monkeypatch.setattr(files, "fcntl", locks)
    write(path, b"after")
    assert len(set(names)) == 2
    assert path.read_bytes() == b"after"
    assert os.listdir(path.parent) == ["file"]


def test_threads_that_write_and_clean_at_once(path):
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(50):
                write(path, bytes([number]) * 1000)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert path.read_bytes() in [bytes([number]) * 1000 for number in range(4)]
    assert os.listdir(path.parent) == ["file"]


def planted_by_another(part: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    part.write_bytes(b"")
    os.chown(part, 65534, 65534)


@pytest.mark.parametrize(
    "plant",
    [
        lambda part: part.symlink_to(part.with_name("target")),
        os.mkfifo,
        Path.mkdir,
        planted_by_another,
        lambda part: part.hardlink_to(part.with_name("file")),
    ],
    ids=["link", "pipe", "directory", "another user's", "hard link"],
)
def test_what_was_planted_is_neither_written_to_nor_in_the_way(path, plant, monkeypatch):
    names = ["0" * 16, "1" * 16]
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: names.pop(0))
    monkeypatch.setattr(files, "_remove_left_over", lambda path: None)  # so that it is there still
    planted = path.with_name(f".file.{names[0]}.part")
    plant(planted)
    kept = path.with_name("kept")
    kept.hardlink_to(path)
    write(path, b"after")
    assert (path.read_bytes(), kept.read_bytes()) == (b"after", b"before")
    assert os.path.lexists(planted)
    assert not path.with_name("target").exists()
    assert names == []


@pytest.mark.parametrize("name", ["/proc/self/file", "/nowhere/file", ".", "/", "a\0b", "a" * 5000])
def test_where_nothing_can_be_written(name):
    with pytest.raises(FileWriteError, match="cannot write test file "):
        write(Path(name), b"")


def test_only_regular_files_are_read(path):
    with open_regular(path, "test file") as file:
        assert file.read() == b"before"
    os.mkfifo(path.with_name("pipe"))
    for wrong in (path.with_name("pipe"), path.parent, path / "below", Path("/dev/zero"), Path("a\0b")):
        with pytest.raises(MissingFileError, match="cannot read test file"):
            open_regular(wrong, "test file")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(MissingFileError):
            open_regular(path.parent, "test file")
    assert len(os.listdir("/proc/self/fd")) == before
