"""Files read batch by batch: Parquet, CSV, Arrow."""

from __future__ import annotations

import contextlib
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from isofold.cli.errors import CommandError, faults_of_file

BATCH_ROWS = 65_536
SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow stream",
}


_REMEDIES = {
    **dict.fromkeys((".gz", ".bz2", ".zst", ".xz", ".zip"), "unpack it first"),
    **dict.fromkeys((".tsv", ".tab"), "write it with commas as .csv, or as .parquet"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as .csv"),
}


def suffix_of(path: str | os.PathLike[str]) -> str:
    return os.path.splitext(os.fspath(path))[1].lower()


def format_by_name(path: str | os.PathLike[str]) -> str:
    """The format that the name's ending stands for. Raises CommandError."""
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        remedy = f"; {_REMEDIES[suffix]}" if suffix in _REMEDIES else ""
        known = ", ".join(SUFFIXES)
        raise CommandError(f"{os.fspath(path)}: format unknown{remedy}; the name must end in one of {known}")
    return SUFFIXES[suffix]


def separator_hint(names: Sequence[str]) -> str:
    """What to add to an error about a CSV file whose whole header arrived as one name."""
    if len(names) == 1:
        for separator, shown in ((";", "';'"), ("\t", "a tab"), ("|", "'|'")):
            if separator in names[0]:
                return f"; is the separator {shown}? Only commas are read"
    return ""


_WRONG_FIELD_COUNT = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, and where they stand in it."""

    batch: Any  # pyarrow.RecordBatch
    path: str
    rows_before: int

    @property
    def rows(self) -> int:
        return int(self.batch.num_rows)

    def fault(self, column: str, index: int, reason: str) -> CommandError:
        """The error for row `index` of this piece. Users count rows from 1, a CSV header not among them."""
        return CommandError(f"{self.path}: column {column!r}, row {self.rows_before + index + 1}: {reason}")


class Source(ABC):
    """An open file. `schema` is known at once; `pieces` may be called once."""

    text = False  # whether fields arrive as text

    def __init__(self, path: str | os.PathLike[str], stream: BinaryIO) -> None:
        self.path = os.fspath(path)
        self.stream = stream
        self.size = os.fstat(stream.fileno()).st_size
        self.schema: Any = None
        self.names: list[str] = []

    def _set_schema(self, schema: Any) -> None:
        self.schema = schema
        self.names = list(schema.names)  # raises UnicodeDecodeError for a damaged one

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stream.close()

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[Piece]:
        """All rows, at most BATCH_ROWS at a time; of `columns` only, if given. Raises CommandError."""
        rows = 0
        with faults_of_file(self.path, "cannot be read"):
            for batch in self._batches(columns):
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    part = batch.slice(start, BATCH_ROWS)
                    yield Piece(part, self.path, rows)
                    rows += part.num_rows

    @abstractmethod
    def _batches(self, columns: Sequence[str] | None) -> Iterator[Any]: ...

    @abstractmethod
    def share_read(self, rows: int) -> float:
        """How much of the file is behind us after `rows` rows, from 0 to 1."""


class ParquetSource(Source):
    def __init__(self, path: str | os.PathLike[str], stream: BinaryIO) -> None:
        super().__init__(path, stream)
        with faults_of_file(path, "not a readable Parquet file"):
            self._file = pyarrow.parquet.ParquetFile(stream)
            self._set_schema(self._file.schema_arrow)

    def _batches(self, columns: Sequence[str] | None) -> Iterator[Any]:
        names = None if columns is None else list(columns)
        # One group after the other: read as a whole, pyarrow holds on to what it has read of earlier ones.
        for group in range(self._file.num_row_groups):
            yield from self._file.iter_batches(BATCH_ROWS, row_groups=[group], columns=names)

    def share_read(self, rows: int) -> float:
        return rows / max(int(self._file.metadata.num_rows), 1)


class ArrowSource(Source):
    """The IPC file format (also called Feather) and the stream format, told apart by their first bytes."""

    def __init__(self, path: str | os.PathLike[str], stream: BinaryIO) -> None:
        super().__init__(path, stream)
        magic = stream.read(6)
        stream.seek(0)
        if magic.startswith(b"FEA1"):
            raise CommandError(
                f"{os.fspath(path)}: Feather version 1 is not supported; write it as version 2"
            )
        with faults_of_file(path, "not a readable Arrow file"):
            self._random_access = magic == b"ARROW1"
            opener = pyarrow.ipc.open_file if self._random_access else pyarrow.ipc.open_stream
            self._reader = opener(stream)
            self._set_schema(self._reader.schema)

    def _raw_batches(self) -> Iterator[Any]:
        if self._random_access:
            for index in range(self._reader.num_record_batches):
                yield self._reader.get_batch(index)
        else:
            yield from self._reader

    def _batches(self, columns: Sequence[str] | None) -> Iterator[Any]:
        for batch in self._raw_batches():
            # Arrow buffers are used as they lie in the file; a damaged offset would be read out of bounds.
            batch.validate(full=True)
            yield batch if columns is None else batch.select(list(columns))

    def share_read(self, rows: int) -> float:
        return self.stream.tell() / max(self.size, 1)


class CsvSource(Source):
    """Comma-separated UTF-8 with a header. Fields stay text: `apply` hands on what it does not change."""

    text = True

    def __init__(self, path: str | os.PathLike[str], stream: BinaryIO) -> None:
        super().__init__(path, stream)
        with faults_of_file(path, "not a readable CSV file"), self._bad_row_reported():
            names = self._open(()).schema.names
        self._set_schema(pa.schema([(name, pa.string()) for name in names]))

    def _open(self, names: Sequence[str], columns: Sequence[str] | None = None) -> Any:
        self.stream.seek(0)
        return pyarrow.csv.open_csv(
            self.stream,
            read_options=pyarrow.csv.ReadOptions(block_size=4 * 2**20, use_threads=False),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            # Bytes first: _as_text can then say which row is not UTF-8.
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={name: pa.binary() for name in names},
                include_columns=list(columns or ()),
            ),
        )

    @contextlib.contextmanager
    def _bad_row_reported(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            found = _WRONG_FIELD_COUNT.search(str(error))
            if found is None:
                raise
            # pyarrow counts the header as row 1.
            row, expected, fields = int(found[1]) - 1, found[2], found[3]
            fault = f"row {row}: {fields} fields where the header has {expected}"
            if expected == "1":
                self.stream.seek(0)
                fault += separator_hint([self.stream.readline(4096).decode("utf-8", "replace")])
            raise CommandError(f"{self.path}: {fault}") from None

    def _batches(self, columns: Sequence[str] | None) -> Iterator[Any]:
        rows = 0
        with self._bad_row_reported():
            for batch in self._open(self.names, columns):
                yield self._as_text(batch, rows)
                rows += batch.num_rows

    def _as_text(self, batch: Any, rows_before: int) -> Any:
        texts = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                texts.append(column.cast(pa.string()))
            except pa.ArrowInvalid:
                row = rows_before + _first_not_utf8(column) + 1
                fault = f"column {name!r}, row {row}: not UTF-8"
                raise CommandError(f"{self.path}: {fault}") from None
        return pa.RecordBatch.from_arrays(texts, names=batch.schema.names)

    def share_read(self, rows: int) -> float:
        return self.stream.tell() / max(self.size, 1)


def _first_not_utf8(column: Any) -> int:
    for index, field in enumerate(column.to_pylist()):
        try:
            field.decode("utf-8")
        except UnicodeDecodeError:
            return index
    raise AssertionError("Arrow and Python disagree on what is UTF-8")


def open_file(path: str | os.PathLike[str]) -> Source:
    """Open one file by its name's ending. The caller closes it. Raises CommandError."""
    kind = format_by_name(path)
    with faults_of_file(path, "cannot be opened"):
        stream = open(path, "rb")  # noqa: SIM115 - handed to the source
    try:
        if os.fstat(stream.fileno()).st_size == 0:
            raise CommandError(f"{os.fspath(path)}: the file is empty")
        if kind == "parquet":
            return ParquetSource(path, stream)
        return CsvSource(path, stream) if kind == "csv" else ArrowSource(path, stream)
    except BaseException:
        stream.close()
        raise
