"""Files written batch by batch: Parquet, CSV, Arrow."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

# A Parquet row group is written when it has this many rows or bytes.
_GROUP_ROWS = 2**18
_GROUP_BYTES = 64 * 2**20


class Sink(ABC):
    @abstractmethod
    def write(self, batch: Any) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Write what is still held back and the file's end."""

    def discard(self) -> None:  # noqa: B027 - most have nothing to do
        """Give up: the stream will be closed and its file removed."""


class ParquetSink(Sink):
    def __init__(self, stream: BinaryIO, schema: Any) -> None:
        self._schema = schema
        self._writer = pyarrow.parquet.ParquetWriter(stream, schema)
        self._held: list[Any] = []
        self._rows = self._bytes = 0

    def write(self, batch: Any) -> None:
        self._held.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.Table.from_batches(self._held, self._schema), _GROUP_ROWS)
        self._held, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def discard(self) -> None:
        # Left open, the writer would try again when it is collected, and complain on standard error.
        with contextlib.suppress(Exception):
            self._writer.close()
        self._writer.is_open = False


class ArrowSink(Sink):
    def __init__(self, stream: BinaryIO, schema: Any, *, random_access: bool) -> None:
        opener = pyarrow.ipc.new_file if random_access else pyarrow.ipc.new_stream
        self._writer = opener(stream, schema)

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class CsvSink(Sink):
    """Quotes only in batches that need them: pyarrow's own rule is to quote every text field."""

    def __init__(self, stream: BinaryIO, schema: Any) -> None:
        self._stream = stream
        self._write_quoted_if_needed(schema.empty_table(), include_header=True)

    def _write_quoted_if_needed(self, data: Any, *, include_header: bool) -> None:
        try:
            self._stream.write(_csv_bytes(data, include_header, "none"))
        except pa.ArrowInvalid:
            self._stream.write(_csv_bytes(data, include_header, "needed"))

    def write(self, batch: Any) -> None:
        self._write_quoted_if_needed(_decoded(batch), include_header=False)

    def close(self) -> None:
        self._stream.flush()


def _csv_bytes(data: Any, include_header: bool, quoting: str) -> Any:
    buffer = pa.BufferOutputStream()
    options = pyarrow.csv.WriteOptions(
        include_header=include_header, quoting_style=quoting, quoting_header=quoting
    )
    pyarrow.csv.write_csv(data, buffer, options)
    return buffer.getvalue()


def _decoded(batch: Any) -> Any:
    """The CSV writer knows no dictionaries."""
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def open_sink(kind: str, stream: BinaryIO, schema: Any) -> Sink:
    """`kind` as format_by_name says it."""
    if kind == "parquet":
        return ParquetSink(stream, schema)
    if kind == "csv":
        return CsvSink(stream, schema)
    return ArrowSink(stream, schema, random_access=kind == "arrow")
