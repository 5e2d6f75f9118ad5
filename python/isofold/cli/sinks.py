"""Files written batch by batch: Parquet, CSV, Arrow."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
    """Quotes a field only if it holds a comma, a quote or a line's end.

    pyarrow's writer has no such style: it quotes all text of a batch, or refuses a batch that needs a quote.
    """

    def __init__(self, stream: BinaryIO, schema: Any) -> None:
        self._stream = stream
        _refuse_types_without_text(schema)
        names = pa.array(schema.names, pa.string())
        self._stream.write((",".join(_quoted_if_needed(names).to_pylist()) + "\n").encode())

    def write(self, batch: Any) -> None:
        columns = [_quoted_if_needed(column) for column in _decoded(batch).columns]
        if batch.num_rows:
            joined = pc.binary_join_element_wise(*columns, ",", null_handling="replace", null_replacement="")
            self._stream.write(_bytes_of(pc.binary_join_element_wise(joined, "\n", "")))

    def close(self) -> None:
        self._stream.flush()


def _refuse_types_without_text(schema: Any) -> None:
    """Let pyarrow's writer raise ArrowInvalid for lists and other types that a CSV file cannot hold."""
    pyarrow.csv.write_csv(schema.empty_table(), pa.BufferOutputStream())


def _quoted_if_needed(column: Any) -> Any:
    texts = column.cast(pa.string())
    if _holds_numbers_or_times(column.type):
        return texts
    special = pc.match_substring_regex(texts, '[",\r\n]')
    quoted = pc.binary_join_element_wise('"', pc.replace_substring(texts, '"', '""'), '"', "")
    return pc.if_else(special, quoted, texts)


def _holds_numbers_or_times(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind))


def _bytes_of(texts: Any) -> Any:
    """All entries of a string array end to end: how Arrow holds them."""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[texts.offset :]
    return memoryview(data)[ends[0] : ends[len(texts)]]


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
