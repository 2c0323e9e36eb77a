import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.tables.whole import whole_file, write_text_whole


@pytest.fixture
def umask_022() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_writes_text(tmp_path: Path) -> None:
    write_text_whole(tmp_path / "a.txt", "δ = 1e-6\r\n")
    assert (tmp_path / "a.txt").read_bytes() == "δ = 1e-6\r\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_replaces_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("a longer text than the new one")
    write_text_whole(target, "new")
    assert target.read_text() == "new"


def test_shows_nothing_before_the_block_ends(tmp_path: Path) -> None:
    target = tmp_path / "a.npy"
    with whole_file(target) as file:
        np.save(file, np.arange(3))
        assert not target.exists()
    assert np.load(target).tolist() == [0, 1, 2]


def test_takes_a_path_without_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_text_whole(Path("a.txt"), "here")
    assert (tmp_path / "a.txt").read_text() == "here"


def test_takes_a_name_as_long_as_the_system_allows(tmp_path: Path) -> None:
    write_text_whole(tmp_path / ("a" * 255), "long")
    assert (tmp_path / ("a" * 255)).read_text() == "long"


@pytest.mark.parametrize("stop", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("before", [None, "old"])
def test_an_exception_leaves_things_as_they_were(tmp_path: Path, stop: type[BaseException], before: str | None) -> None:
    target = tmp_path / "a.txt"
    if before is not None:
        target.write_text(before)
    with pytest.raises(stop), whole_file(target) as file:
        file.write(b"half")
        file.flush()
        raise stop
    assert [path.read_text() for path in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_failure_to_reach_the_disk_leaves_things_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    target = tmp_path / "a.txt"
    target.write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        write_text_whole(target, "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@pytest.mark.parametrize("before", [None, "old"])
def test_a_process_that_dies_half_way_leaves_the_target_untouched(tmp_path: Path, before: str | None) -> None:
    target = tmp_path / "a.txt"
    if before is not None:
        target.write_text(before)
    code = (
        "import os, sys; from pathlib import Path; from shuffledp.tables.whole import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as file:\n"
        "    file.write(b'half' * 100_000); file.flush(); os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(target)], check=False).returncode == 9
    if before is None:
        assert not target.exists()
    else:
        assert target.read_text() == before
    left = [path.name for path in tmp_path.iterdir() if path != target]
    assert len(left) == 1 and left[0].startswith(".shuffledp-") and left[0].endswith(".part")
    write_text_whole(target, "new")
    assert target.read_text() == "new"


@pytest.mark.usefixtures("umask_022")
def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    write_text_whole(tmp_path / "a.txt", "x")
    assert mode_of(tmp_path / "a.txt") == 0o644


@pytest.mark.usefixtures("umask_022")
def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("secret")
    target.chmod(0o600)
    write_text_whole(target, "x")
    assert mode_of(target) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "a.txt"
    target.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    write_text_whole(link, "new")
    assert link.is_symlink() and target.read_text() == "new"


def refuse(path: Path) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        write_text_whole(path, "x")
    error = caught.value
    assert error.parameter == "out"
    assert error.value == str(path)
    assert str(error).startswith("out must be ") and str(error).endswith(".")
    return error


def test_refuses_a_parent_that_is_missing(tmp_path: Path) -> None:
    assert str(tmp_path / "missing") in str(refuse(tmp_path / "missing" / "a.txt"))


def test_refuses_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert str(tmp_path / "file") in str(refuse(tmp_path / "file" / "a.txt"))


def test_refuses_a_directory(tmp_path: Path) -> None:
    refuse(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_refuses_a_device() -> None:
    refuse(Path(os.devnull))
    assert not Path(os.devnull).is_file()


def test_refuses_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", fail)
    assert "can be written" in str(refuse(tmp_path / "a.txt"))


def test_a_full_disk_is_the_users_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert "room" in str(refuse(tmp_path / "a.txt"))
    assert list(tmp_path.iterdir()) == []
