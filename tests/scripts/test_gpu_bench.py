"""bench/gpu: what is asked, floors, what profilers print, and the report, from figures made up here."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cells import DEMANDS, Cell, copy_bytes, floor, floor_ms, short, verdict, yardstick
from certification import paired
from judgement import checks, floor_of, judged
from report_tables import binds
from stages import merged, short_name
from traffic import METRICS, RATES, by_call, kernels, summed

REPOSITORY = Path(__file__).resolve().parents[2]
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("count", "text"),
    [(16, "16"), (999, "999"), (1000, "1e3"), (11_500, "1.15e4"), (10**8, "1e8"), (123_456, "123,456")],
)
def test_sizes_are_short(count: int, text: str) -> None:
    assert short(count) == text


def test_floors() -> None:
    plain = Cell("noise", 10, 100)
    assert floor(plain, 1000).bytes == copy_bytes(plain, 1000) == 8000
    assert floor(plain, 1000, flags_written=True).written == 5000
    double = replace(plain, dtype="float64")
    assert floor(double, 1000).bytes == copy_bytes(double, 1000) == 16000
    weighted = replace(plain, weighted=True)
    # A fit writes one array where the copy beside it writes two.
    assert (floor(weighted, 1000).bytes, copy_bytes(weighted, 1000)) == (12000, 16000)
    assert floor_ms(weighted, 1000, 4.0) == 3.0
    ragged = replace(plain, ragged=True)
    assert floor(ragged, 1000).read == 4000 + 8 * 11
    gradient = replace(plain, call="gradient in values")
    assert (floor(gradient, 1000).read, floor(gradient, 1000).written) == (5000, 4000)
    both = replace(weighted, call="gradient in values and weights")
    assert (floor(both, 1000).read, floor(both, 1000).written) == (13000, 8000)


def test_demands_are_of_different_cells() -> None:
    assert len({demand.cell for demand in DEMANDS}) == len(DEMANDS)
    assert all(demand.aim < demand.must for demand in DEMANDS)
    assert [verdict(ratio, DEMANDS[0]) for ratio in (1.5, 2.2, 2.21)] == ["aim reached", "pass", "miss"]


def record(cell: Cell, ms: float, **more: object) -> dict[str, Any]:
    elements = cell.rows * cell.length
    beside = {"copy_ms": [0.9, 1.0, 1.1]} if cell.is_fit else {"call": cell.call, "fit_ms": [0.9, 1.0, 1.1]}
    about = {"shape": cell.shape, "rows": cell.rows, "length": cell.length, "dtype": cell.dtype}
    about |= {"weighted": cell.weighted, "ragged": cell.ragged, "elements": elements}
    figures = {"ms": [0.9 * ms, ms, 1.1 * ms], "scratch_bytes": elements, "launches": 7}
    return about | figures | beside | more


def whole_run() -> list[dict[str, Any]]:
    """Every cell takes twice the copy, so near ties take as long as noise."""
    wanted = {demand.cell for demand in DEMANDS} | {c for d in DEMANDS if (c := yardstick(d))}
    return [record(cell, 2.0) for cell in sorted(wanted, key=str)]


def test_demands_are_judged_by_their_own_yardstick() -> None:
    found = {one.demand.cell: one for one in judged(whole_run())}
    assert {one.ratio for one in found.values()} == {1.0, 2.0}
    assert found[Cell("rates", 1, 10 * MILLION, weighted=True)].ratio == 1.0
    assert found[Cell("noise", MILLION, 16, call="gradient in values")].verdict == "miss"
    assert found[Cell("noise", 1, 100 * MILLION)].verdict == "pass"
    assert {one.verdict for one in judged([])} == {"not measured"}


def test_a_gradient_has_the_floor_of_its_fits_copy() -> None:
    fit = Cell("noise", 1, 100)
    gradient = replace(fit, call="gradient in values")
    records = {cell: record(cell, 2.0) for cell in (fit, gradient)}
    assert floor_of(records[fit], records) == 1.0
    assert floor_of(records[gradient], records) == pytest.approx(9 / 8)
    del records[fit]
    assert floor_of(record(gradient, 2.0), records) is None


def peer_cell(cell: Cell, ratio: float) -> dict[str, Any]:
    def taken(ms: float) -> dict[str, Any]:
        to_isofold = ms / 2.0
        return {"rounds": 3, "ms": [ms] * 3, "to_copy": [ms] * 3, "to_isofold": [to_isofold] * 3}

    times = {"isofold": taken(2.0), "torchisotonic": taken(2 * ratio), "copy": taken(1.0)}
    stage = {"name": "fit_rows", "launches": 1.0, "microseconds": 3.5}
    memory = {"peak_bytes": 9 * cell.rows * cell.length, "result_bytes": 4 * cell.rows * cell.length}
    return record(cell, 2.0) | {
        "calls": times,
        "replays": times,
        "stages": {"isofold": [stage], "torchisotonic": [stage, stage]},
        "memory": {"isofold": memory, "torchisotonic": memory},
    }


def test_checks() -> None:
    long, short_rows = Cell("noise", 1, 100 * MILLION), Cell("noise", MILLION, 16)
    peers = {"cells": [peer_cell(long, 5.0), peer_cell(short_rows, 0.9), {"failed": "out of memory"}]}
    peers["cells"][2] |= record(Cell("labels", 1, 100), 1.0)
    core = {"cells": [record(long, 2.0), record(short_rows, 2.0, scratch_bytes=10**9)]}
    costs = {"cells": paired([{"cells": [record(long, 1.05)]}], [{"cells": [record(long, 1.0)]}])}
    found = [check.verdict for check in checks({"core": core, "peers": peers, "certification": costs})]
    assert found == ["miss", "pass", "miss", "pass", "pass", "pass", "not measured"]
    assert {check.verdict for check in checks({"core": {"cells": []}})} == {"not measured"}


def test_certification_pairs_medians_over_rounds() -> None:
    cell, other = Cell("noise", 1, 100), Cell("labels", 1, 100)
    certified = [{"cells": [record(cell, ms), record(other, 1.0)]} for ms in (3.0, 2.2, 1.0)]
    plain = [{"cells": [record(cell, ms)]} for ms in (2.0, 9.0, 1.0)]
    (line,) = paired(certified, plain)
    assert line["certified_ms"] == [3.0, 2.2, 1.0]
    assert line["cost"] == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (
            "void isofold::cuda::scan_groups<isofold::cuda::Elements<float, isofold::cuda::Unweighted> >"
            "(isofold::cuda::Plan<isofold::cuda::Elements<float, isofold::cuda::Unweighted> >)",
            "scan_groups",
        ),
        (
            "void torchisotonic::(anonymous namespace)::merge_kernel<false, true>(Hulls, double const*)",
            "merge_kernel",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::frac_kernel_cuda"
            "(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(float)#1}>(int)",
            "vectorized_elementwise_kernel",
        ),
        ("Memset (Device)", "Memset (Device)"),
        ("Memcpy DtoD (Device -> Device)", "Memcpy DtoD (Device -> Device)"),
    ],
)
def test_kernels_have_short_names(kernel: str, name: str) -> None:
    assert short_name(kernel) == name


def test_stages_of_one_name_are_merged() -> None:
    found = merged([("void a::f<1>(int)", 5, 10.0), ("g(int)", 10, 4.0), ("void a::f<2>(int)", 5, 20.0)], 5)
    assert [(s.name, s.launches, s.microseconds) for s in found] == [("f", 2.0, 6.0), ("g", 2.0, 0.8)]


def ncu_row(number: int, kernel: str, *figures: str) -> str:
    """A line of ncu: read, written, nanoseconds, instructions; of the rates the first by number, others 2."""
    rates = [str(10.0 * number), *["2"] * (len(RATES) - 1)]
    return ",".join(f'"{field}"' for field in (number, 77, kernel, 1, *figures, *rates))


MARK = "void at::native::k<4, at::native::frac_kernel_cuda(X&)::{lambda()#1}>(int)"
HEADS = ("ID", "Process ID", "Kernel Name", "CC", *METRICS.values(), *RATES.values())
UNITS = ("",) * 4 + ("byte", "byte", "ns", "inst") + ("",) * len(RATES)
NCU = [
    "==PROF== Connected to process 77",
    *(",".join(f'"{field}"' for field in line) for line in (HEADS, UNITS)),
    ncu_row(0, "void warm<1>(int)", "7", "7", "7", "7"),
    ncu_row(1, MARK, "64", "0", "1,500", "9"),
    ncu_row(
        2, "void isofold::cuda::scan_groups<float>(Plan<float>)", "400,000,000", "12,000,000", "100,000", "8"
    ),
    '==PROF== Profiling "fit": 0%, 50%',
    ncu_row(
        3, "void isofold::cuda::write_chunks<float>(Plan<float>)", "1,000", "400,000,000", "95,000.5", "7"
    ),
    ncu_row(4, MARK, "64", "0", "1,500", "9"),
    ncu_row(5, "void peer::fit<float>(int)", "5", "6", "10", "3"),
    ncu_row(6, "void peer::fit<double>(int)", "5", "6", "30", "3"),
]


def test_traffic_is_cut_at_the_markers() -> None:
    first, second = (summed(call) for call in by_call(kernels(NCU)))
    assert (first["read_bytes"], first["written_bytes"]) == (400_001_000, 412_000_000)
    assert [stage["name"] for stage in first["stages"]] == ["scan_groups", "write_chunks"]
    assert first["stages"][1]["nanoseconds"] == 95_000.5
    (stage,) = second["stages"]
    expected = {"name": "fit", "launches": 2.0, "read": 10.0, "written": 12.0, "nanoseconds": 40.0}
    assert expected.items() <= stage.items()
    assert stage["instructions"] == 6.0
    # Rates are weighted by time: 50 for 10 ns, 60 for 30.
    assert [stage[name] for name in RATES] == [57.5, *[2.0] * (len(RATES) - 1)]


def test_what_binds_is_told_of_kernels_that_take_long() -> None:
    stage = dict.fromkeys(("launches", *METRICS, *RATES), 2.0)
    stages = [
        stage | {"name": "fit", "nanoseconds": 95_000.0, "warp_latency": 10.0, "long_scoreboard": 6.0},
        stage | {"name": "write", "nanoseconds": 5_000.0},
    ]
    call = record(Cell("noise", 1, MILLION), 2.0) | {"contender": "isofold", "stages": stages}
    (line,) = [line for line in binds({"calls": [call]}).splitlines() if "noise" in line]
    assert "`fit`" in line
    assert "| 95 |" in line
    assert "long scoreboard 60%" in line
    assert binds({"calls": [call | {"contender": "torchisotonic"}]}) == ""


def write_report(folder: Path, docs: Path) -> str:
    command = [sys.executable, str(REPOSITORY / "bench/gpu/report.py"), str(folder), "--docs", str(docs)]
    subprocess.run(command, check=True, capture_output=True)
    return (docs / "gpu_benchmarks.md").read_text()


def test_the_report_is_made_of_whatever_there_is(tmp_path: Path) -> None:
    core = {"device": "a GPU", "driver": 1, "commit": "abc", "repeats": 3, "cells": whole_run()}
    (tmp_path / "gpu-2026-01-01.json").write_text(json.dumps({**core, "commit": "old"}))
    (tmp_path / "gpu-2026-01-02.json").write_text(json.dumps(core))
    page = write_report(tmp_path, tmp_path / "docs")
    assert "a GPU, commit abc." in " ".join(page.split())
    assert "Not measured on this date: peers, accuracy, traffic, certification, prototype." in page
    assert "34 demands" in page

    long = Cell("noise", 1, 100 * MILLION)
    peers = {
        "rounds": 3,
        "torch": "2",
        "cells": [peer_cell(long, 5.0), peer_cell(Cell("noise", 1, 1000), 5.0)],
    }
    measures = {
        "step_down": 0.0,
        "deviation": 1e-17,
        "deviation_to_largest": 0.0,
        "objective": 1e-30,
        "kkt": 1e-18,
        "error": 0.0,
    }
    about = {"shape": "noise", "length": 1000, "dtype": "float64", "weights": "none"}
    lines = [about | measures | {"contender": name} for name in ("isofold", "SciPy, float64")]
    lines.append(lines[0] | {"shape": "cancellation_1e3"})
    call = record(long, 2.0) | {"contender": "isofold", "floor_bytes": 8, "read_bytes": 8, "written_bytes": 8}
    call["stages"] = [dict.fromkeys(("launches", *METRICS, *RATES), 2.0) | {"name": "fit"}]
    theirs = [{"shape": "noise", "rows": 1, "length": 100 * MILLION, "ms": 1.0, "copy_ms": 0.5}]
    theirs.append({**theirs[0], "rows": 3})
    parts = {
        "peers": peers,
        "accuracy": {"lines": lines},
        "traffic": {"calls": [call]},
        "uncertified": core,
        "prototype": {"cells": theirs},
    }
    for part, figures in parts.items():
        (tmp_path / f"gpu-2026-01-02-{part}.json").write_text(json.dumps(figures))
    page = write_report(tmp_path, tmp_path / "docs")
    assert "Not measured" not in page
    assert "| 1 x 1e8 | noise | isofold | 0 | 0 | 0 | 2.00x |" in page
    for picture in re.findall(r"\(pictures/(\w+\.svg)\)", page):
        assert (tmp_path / "docs" / "pictures" / picture).read_text().rstrip().endswith("</svg>")
    assert write_report(tmp_path, tmp_path / "again") == page
    pictures = [tmp_path / docs / "pictures" / "gpu_lengths.svg" for docs in ("docs", "again")]
    assert pictures[0].read_text() == pictures[1].read_text()


def test_parts_that_stand_alone_may_be_older(tmp_path: Path) -> None:
    core = {"device": "a GPU", "driver": 1, "commit": "new", "repeats": 3, "cells": whole_run()}
    cells = [peer_cell(Cell("noise", 1, 100 * MILLION), 5.0), peer_cell(Cell("noise", 1, 1000), 5.0)]
    peers = {"rounds": 3, "torch": "2", "cells": cells, "commit": "old", "date": "2026-01-02"}
    (tmp_path / "gpu-2026-01-03.json").write_text(json.dumps(core))
    for day, commit in (("01", "oldest"), ("02", "old"), ("04", "later")):
        found = peers | {"commit": commit, "date": f"2026-01-{day}"}
        (tmp_path / f"gpu-2026-01-{day}-peers.json").write_text(json.dumps(found))
    page = write_report(tmp_path, tmp_path / "docs")
    assert "Measured earlier, and not again: peers 2026-01-02, commit old." in page
    assert "Beside torchisotonic" in page
    assert "Not measured on this date: accuracy, traffic" in page


def test_the_committed_report_is_that_of_the_committed_results(tmp_path: Path) -> None:
    page = write_report(REPOSITORY / "bench" / "results", tmp_path)
    assert page == (REPOSITORY / "docs" / "gpu_benchmarks.md").read_text()
