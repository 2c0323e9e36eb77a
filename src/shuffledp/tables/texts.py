"""One column of a file as text."""

from pathlib import Path

from shuffledp.tables.complaints import no_rows
from shuffledp.tables.reading import Reading
from shuffledp.tables.words import LONGEST_TEXT as LONGEST_TEXT
from shuffledp.tables.words import Texts as Texts


def read_texts(
    path: Path, column: str | None = None, *, reading: Reading | None = None, other: str | None = None
) -> Texts:
    r"""Read one column of a CSV, Parquet or .npy file as text, exactly as it is written.

    Args:
        path: the file; - is standard input.
        column: its name; the only one if left out.
        reading: what is between cells, and what people without a value report.
        other: the category that takes people without a value, if the policy says so.

    Returns:
        The different texts, and which of them every person has.

    Raises:
        DataError: no rows, a text that is too long, or a person without a value where that is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("colour,age\nred,1\nNA,2\nred,3\n")
    ...     texts = read_texts(file, "colour")
    >>> texts.distinct.tolist(), texts.where.tolist()
    (['red', 'NA'], [0, 1, 0])
    """
    reading = Reading() if reading is None else reading
    table = reading.open(path)
    name = table.choose(column)
    texts = table.words(name)
    if not len(texts):
        raise no_rows(table.source)
    texts.check_lengths(name, table.where)
    return texts.complete(reading.missing, other, name, table.where)
