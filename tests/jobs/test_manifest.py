"""A data set is what its manifest says, whole, of one schema and unchanged, or it is refused."""

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.messages import numbers_in, write_ciphertexts
from shuffledp.engines import LocalEngine
from shuffledp.errors import JobStoppedError, ParameterError
from shuffledp.jobs import shuffling
from shuffledp.jobs.manifest import DataManifest, DataSet
from shuffledp.jobs.parts import columns_of
from shuffledp.jobs.shuffling import shuffle_files


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set that a job has published."""
    folder = tmp_path_factory.mktemp("made")
    with LocalEngine(processes=1) as engine:
        shuffle_files(write_ciphertexts(folder / "in", (40, 60)), folder / "out", engine=engine, reports=50)
    return folder / "out"


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


def look(folder: Path, **more: object) -> DataSet:
    with LocalEngine(processes=1) as engine:
        return DataSet.at(folder, engine, **more)


def test_a_manifest_says_what_there_is(copied: Path) -> None:
    known, data = DataManifest.load(copied), look(copied)
    assert data.manifest == known and known.reports == 50 and known.messages == 100
    document = json.loads((copied / "manifest.json").read_bytes())
    assert document["schema"] == 1 and document["columns"] == {"ciphertext": 9}
    assert set(document["files"][0]) == {"name", "bytes", "rows", "sha256"}
    assert look(copied, reports=50).manifest.reports == 50
    with pytest.raises(ParameterError, match="reports must be what the manifest says, 50, got 49"):
        look(copied, reports=49)


def edited(folder: Path, **change: object) -> None:
    document = json.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_text(json.dumps({**document, **change}))


def flip(folder: Path) -> None:
    path = folder / "part-000000.parquet"
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(bytes(content))


CHANGES = {
    "a bit": (flip, "part-000000.parquet has changed since"),
    "a torn file": (
        lambda folder: (folder / "part-000000.parquet").write_bytes(
            (folder / "part-000000.parquet").read_bytes()[:-20]
        ),
        "must be a whole and undamaged Parquet file",
    ),
    "an empty file": (
        lambda folder: (folder / "part-000000.parquet").write_bytes(b""),
        "must be a whole and undamaged Parquet file",
    ),
    "a file more": (
        lambda folder: shutil.copy(folder / "part-000000.parquet", folder / "more.parquet"),
        "more.parquet is not in it",
    ),
    "a file less": (
        lambda folder: (folder / "part-000000.parquet").rename(folder / "part-000001.parquet"),
        "part-000000.parquet is not there",
    ),
    "no file": (lambda folder: (folder / "part-000000.parquet").unlink(), "must have at least one Parquet file"),
    "another kind of file": (lambda folder: (folder / "notes.txt").write_text("x"), "must be a Parquet file"),
    "another version": (lambda folder: edited(folder, schema=2), "manifest.schema must be 1, got 2"),
    "no JSON": (lambda folder: (folder / "manifest.json").write_text("{"), "must be a JSON document"),
    "another sum": (lambda folder: edited(folder, messages=7), "must add up"),
    "no reports": (lambda folder: edited(folder, reports="many"), "must add up"),
    "no files": (lambda folder: edited(folder, files=3), "must have files, columns and reports"),
    "no columns": (lambda folder: edited(folder, columns={}), "must be ciphertexts or messages"),
    "other columns": (lambda folder: edited(folder, columns={"ciphertext": 8}), "must have the columns"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_data_set_that_is_another_is_refused(copied: Path, change: str) -> None:
    alter, words = CHANGES[change]
    alter(copied)
    with pytest.raises(ParameterError, match=words):
        look(copied)


def test_what_programs_leave_beside_is_not_looked_at(copied: Path) -> None:
    for name in ("_SUCCESS", ".hidden", "_delta_log/0.json"):
        (copied / name).parent.mkdir(exist_ok=True)
        (copied / name).write_text("")
    assert look(copied).manifest.messages == 100


def test_a_job_ends_whatever_its_folders_are_called(tmp_path: Path) -> None:
    """As text `day-2/x` comes before `day/x`; as paths it comes after."""
    write_ciphertexts(tmp_path / "in" / "day", (40,))
    write_ciphertexts(tmp_path / "in" / "day-2", (60,))
    data = look(tmp_path / "in")
    data.check_unchanged()
    assert [file.name for file in data.manifest.files] == ["day-2/hour-00.parquet", "day/hour-00.parquet"]
    with LocalEngine(processes=1) as engine:
        assert shuffle_files(tmp_path / "in", tmp_path / "out", engine=engine).manifest.messages == 100


def test_a_link_to_a_folder_is_not_left_out_in_silence(tmp_path: Path) -> None:
    write_ciphertexts(tmp_path / "far", (5,))
    write_ciphertexts(tmp_path / "in", (5,))
    (tmp_path / "in" / "far").symlink_to(tmp_path / "far")
    with pytest.raises(ParameterError, match=r"is a link to a folder, .*in/far: copy that folder here, or name it"):
        look(tmp_path / "in")
    # A link to a file is that file, and one that is named is followed.
    (tmp_path / "in" / "far").unlink()
    (tmp_path / "in" / "more.parquet").symlink_to(tmp_path / "far" / "hour-00.parquet")
    (tmp_path / "named").symlink_to(tmp_path / "in")
    assert look(tmp_path / "named").manifest.messages == 10


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENOENT])
def test_a_disk_that_fails_leaves_a_job_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """A file is damaged where pyarrow says so, not where the system cannot read it for a while."""
    source, read = write_ciphertexts(tmp_path / "in", (40, 60)), shuffling.read_rows

    def failing(*given: object) -> object:
        def parquet_file(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(pq, "ParquetFile", parquet_file)
            return read(*given)

    with LocalEngine(processes=1) as engine:
        with monkeypatch.context() as patched:
            patched.setattr(shuffling, "read_rows", failing)
            with pytest.raises(JobStoppedError, match=rf"{os.strerror(number)}\), got .*\.parquet: nothing was rel"):
                shuffle_files(source, tmp_path / "out", engine=engine)
        shuffle_files(source, tmp_path / "out", engine=engine, resume=True)
    assert sorted(numbers_in(tmp_path / "out")) == list(range(100))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = write_ciphertexts(tmp_path / "in", (5,))
    (source / "gone.parquet").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ParameterError, match=r"that can be read, and .*gone.parquet cannot: No such file"):
        look(source)


def test_a_file_that_changes_while_it_is_looked_at_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, digest = write_ciphertexts(tmp_path / "in", (40,)), hashlib.file_digest

    def meanwhile(file: BinaryIO, name: str) -> object:
        # After its groups were looked at.
        write_ciphertexts(source, (41,))
        return digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", meanwhile)
    with pytest.raises(ParameterError, match="must not change while a job looks at it"):
        look(source)


def test_files_of_other_schemas_are_refused(tmp_path: Path) -> None:
    write_ciphertexts(tmp_path / "in", (5, 5))
    pq.write_table(pa.table({"ciphertext": pa.array([b"12345678"], pa.binary(8))}), tmp_path / "in" / "hour-02.parquet")
    with pytest.raises(ParameterError, match="must be of one length everywhere, got 8 and 9 bytes"):
        look(tmp_path / "in")
    pq.write_table(pa.table({"payload": [1, 2]}), tmp_path / "in" / "hour-02.parquet")
    with pytest.raises(ParameterError, match=r"hour-02.parquet.* make a data set of files of one schema"):
        look(tmp_path / "in")


def test_a_path_that_is_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="in must be a Parquet file or a folder of them"):
        look(tmp_path / "nothing")


@pytest.mark.parametrize("change", ["written", "added", "removed"])
def test_data_that_change_while_a_job_runs_are_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    source, write = write_ciphertexts(tmp_path / "in", (40, 60)), shuffling.write_part

    def meanwhile(*given: object) -> object:
        if change == "removed":
            (source / "hour-01.parquet").unlink()
        else:
            name = "hour-01" if change == "written" else "hour-02"
            shutil.copy(source / "hour-00.parquet", source / f"{name}.parquet")
        return write(*given)

    monkeypatch.setattr(shuffling, "write_part", meanwhile)
    with (
        pytest.raises(ParameterError, match=r"must (not change while|have the files)"),
        LocalEngine(processes=1) as engine,
    ):
        shuffle_files(source, tmp_path / "out", engine=engine)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("rows", [1, 7, 20, 33, 1000])
def test_parts_are_all_rows_in_their_order(tmp_path: Path, rows: int) -> None:
    data = look(write_ciphertexts(tmp_path / "in", (40, 1, 59), group=20))
    parts = data.parts(rows * 9)
    assert parts[0].first_row == 0 and max(part.rows for part in parts) <= rows
    found = []
    for part in parts:
        cells = [cell for (column,) in columns_of(part, data.columns, 8) for cell in column.to_pylist()]
        assert len(cells) == part.rows
        found += [int.from_bytes(cell[1:5], "big") for cell in cells]
    assert found == list(range(100)) and numbers_in(tmp_path / "in") == found
