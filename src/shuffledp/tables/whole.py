"""Tables and texts are written whole or not at all."""

from pathlib import Path

from shuffledp.files import whole_file

__all__ = ["whole_file", "write_text_whole"]


def write_text_whole(path: Path, text: str) -> None:
    r"""Write UTF-8 text to a file, whole or not at all; line ends are kept as they are.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text_whole(Path(folder) / "note.txt", "ε = 1\n")
    ...     (Path(folder) / "note.txt").read_bytes()
    b'\xce\xb5 = 1\n'
    """
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
