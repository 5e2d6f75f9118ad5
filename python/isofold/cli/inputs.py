"""What a user gives as FILE: a file, a folder of files or a pattern; many files are read like one."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import Self, TypeAlias

from isofold.cli.errors import CommandError, faults_of_file, warn
from isofold.cli.sources import SUFFIXES, Piece, Source, format_by_name, open_file, suffix_of
from isofold.cli.wording import counted, shortened

Input: TypeAlias = "Source | ManyFiles"


class ManyFiles:
    """Files of one format and with the same columns, one after the other in the order of their names."""

    def __init__(self, path: str, files: Sequence[str]) -> None:
        self.path = path
        self._files = files
        self._sizes: list[int] = []
        self._done = 0  # bytes of the files that are read
        kinds = {format_by_name(file): file for file in reversed(files)}
        if len(kinds) > 1:
            one, other = list(kinds.values())[:2]
            raise CommandError(f"{path}: files of different formats, {one} and {other}")
        with open_file(files[0]) as first:
            self.schema, self.names, self.text = first.schema, first.names, first.text
            self._sizes.append(first.size)
        for file in files[1:]:
            with self._open(file) as source:
                self._sizes.append(source.size)

    def _open(self, file: str) -> Source:
        """Open one and demand the columns of the first."""
        source, first = open_file(file), self._files[0]
        try:
            if source.names != self.names:
                differing = [
                    name
                    for name in [*self.names, *source.names]
                    if (name in self.names) != (name in source.names)
                ]
                fault = f"{differing[0]!r} is in one of them only" if differing else "their order is another"
                raise CommandError(f"{file}: not the columns of {first}: {fault}")
            for mine, theirs in zip(self.schema, source.schema, strict=True):
                if mine.type != theirs.type:
                    fault = f"column {mine.name!r} holds {theirs.type}, in {first} {mine.type}"
                    raise CommandError(f"{file}: {fault}")
        except BaseException:
            source.stream.close()
            raise
        return source

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing is open between two files."""

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[Piece]:
        """As Source.pieces. Rows are counted within each file."""
        for file, size in zip(self._files, self._sizes, strict=True):
            with self._open(file) as source:
                yield from source.pieces(columns)
            self._done += size

    def share_read(self, rows: int) -> float:
        return self._done / max(sum(self._sizes), 1)


def _files_of_folder(folder: str) -> tuple[list[str], list[str]]:
    """The files right inside, and those of no known format; without hidden ones and markers (_SUCCESS)."""
    with faults_of_file(folder, "cannot be opened"):
        names = sorted(name for name in os.listdir(folder) if not name.startswith((".", "_")))
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        if os.path.isdir(path):
            hint = os.path.join(folder, "**", "*.parquet")
            raise CommandError(
                f"{folder}: it holds a folder, {path}; name the files by a pattern, as '{hint}'"
            )
    if not paths:
        raise CommandError(f"{folder}: the folder holds no files")
    known = [path for path in paths if suffix_of(path) in SUFFIXES]
    if not known:
        format_by_name(paths[0])
    return known, [path for path in paths if suffix_of(path) not in SUFFIXES]


def files_of(path: str | os.PathLike[str]) -> list[str]:
    """The files that `path` stands for: itself, those in it, or those that match. Raises CommandError."""
    given = os.fspath(path)
    if os.path.isdir(given):
        return _files_of_folder(given)[0]
    if os.path.lexists(given) or not glob.has_magic(given):
        return [given]
    found = sorted(match for match in glob.glob(given, recursive=True) if not os.path.isdir(match))
    if not found:
        raise CommandError(f"{given}: no file matches the pattern")
    return found


def open_input(path: str | os.PathLike[str]) -> Input:
    """Open a file, a folder or what a pattern matches. The caller closes it. Raises CommandError."""
    given, files = os.fspath(path), files_of(path)
    skipped = _files_of_folder(given)[1] if os.path.isdir(given) else []
    if skipped:
        warn(f"{given}: {counted(len(skipped), 'file')} of no known format skipped: {shortened(skipped)}")
    return open_file(files[0]) if files == [given] else ManyFiles(given, files)
