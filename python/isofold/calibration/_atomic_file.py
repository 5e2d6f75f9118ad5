"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file beside `path`; rename it to `path` when the block ends well, remove it otherwise.

    A symbolic link is followed. An existing file is replaced and hands on its permissions; anything else that
    exists under the name (a folder, a device, a pipe) is refused. Raises OSError.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)} exists and is not a regular file")
    temporary = target.with_name(f".isofold-{secrets.token_hex(8)}.part")
    try:
        # Opened here and not by tempfile, so that the umask decides the permissions of a new file.
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            error.filename = os.fspath(path)  # the caller's name, not the temporary one
            raise
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            if target.exists():
                os.fchmod(stream.fileno(), target.stat().st_mode & 0o777)
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
