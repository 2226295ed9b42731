"""Files that are written whole or not at all, and what may lie in the way of that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from atos_py.errors import FileWriteError, MissingFileError
from atos_py.files import open_regular, replacing


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


def test_what_a_killed_process_left_is_taken_over(path):
    path.with_name(".file.part").write_bytes(b"a long rest of something else")
    write(path, b"after")
    assert path.read_bytes() == b"after"
    assert os.listdir(path.parent) == ["file"]


def planted_by_another(part: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    part.write_bytes(b"")
    os.chown(part, 65534, 65534)


@pytest.mark.parametrize(
    "plant",
    [lambda part: part.symlink_to(part.with_name("target")), os.mkfifo, Path.mkdir, planted_by_another],
    ids=["link", "pipe", "directory", "another user's"],
)
def test_what_was_planted_is_not_written_to(path, plant):
    plant(path.with_name(".file.part"))
    with pytest.raises(FileWriteError, match="cannot write test file"):
        write(path, b"after")
    assert path.read_bytes() == b"before"
    assert not path.with_name("target").exists()


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
