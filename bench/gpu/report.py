"""Writes docs/gpu_benchmarks.md and its plots from the files that the GPU benchmarks left.

    python bench/gpu/report.py [FOLDER] [--date 2026-11-30] [--docs docs]

FOLDER (bench/results) holds gpu-<date>.json, of time_gpu, and beside it what there is of
gpu-<date>-peers.json, -accuracy, -traffic, -certification (or -uncertified) and -prototype; the newest date
is taken, and of peers, accuracy and traffic, which stand alone, the newest that there is up to it. Nothing
is measured here, so the same files give the same documents. Needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import report_plots
import report_tables as tables
import report_text as text
from certification import paired

REPOSITORY = Path(__file__).resolve().parents[2]
PARTS = ("peers", "accuracy", "traffic", "certification", "uncertified", "prototype")
ALONE = ("peers", "accuracy", "traffic")  # not compared with time_gpu's run

Figures = dict[str, Any]


def load(folder: Path, date: str | None) -> tuple[str, dict[str, Figures]]:
    """The date, and by part what was measured on it; "core" is time_gpu's."""
    dates = sorted(
        match.group(1)
        for file in folder.iterdir()
        if (match := re.fullmatch(r"gpu-([\d-]+)\.json", file.name))
    )
    if not dates:
        raise SystemExit(f"no gpu-<date>.json in {folder}")
    chosen = date or dates[-1]
    files = {"core": folder / f"gpu-{chosen}.json"}
    files |= {part: folder / f"gpu-{chosen}-{part}.json" for part in PARTS}
    for part in ALONE:
        earlier = sorted(file for file in folder.glob(f"gpu-*-{part}.json") if file <= files[part])
        files[part] = earlier[-1] if earlier else files[part]
    found = {part: json.loads(file.read_text()) for part, file in files.items() if file.exists()}
    if "core" not in found:
        raise SystemExit(f"no {files['core']}")
    plain = found.pop("uncertified", None)
    # Of another commit it would say nothing about certification.
    if "certification" not in found and plain and plain["commit"] == found["core"]["commit"]:
        found["certification"] = {"cells": paired([found["core"]], [plain])}
    return chosen, found


def document(date: str, found: dict[str, Figures]) -> str:
    core = found["core"]
    sections = [text.HEAD.format(date=date, device=core["device"], commit=core["commit"])]
    older = [part for part in ALONE if part in found and found[part].get("date", date) != date]
    if older:
        measured = (f"{part} {found[part]['date']}, commit {found[part]['commit']}" for part in older)
        sections.append(f"Measured earlier, and not again: {'; '.join(measured)}.")
    sections.append(tables.demands(core["cells"]))
    sections.append(tables.other_demands(found))
    sections.append("![Times to the copy's, against what is asked](pictures/gpu_demands.svg)")
    if "peers" in found:
        sections.append(tables.peers(found["peers"]))
        sections.append("![Time by length of a row](pictures/gpu_lengths.svg)")
        sections.append(tables.stages(found["peers"]))
        sections.append(tables.memory(found["peers"]))
    if "traffic" in found:
        sections.append(tables.traffic(found["traffic"]))
    if "accuracy" in found:
        sections.append(tables.accuracy(found["accuracy"]))
    if "certification" in found:
        sections.append(tables.certification(found["certification"]))
    if "prototype" in found:
        sections.append(tables.prototype(core["cells"], found["prototype"]))
    sections.append(tables.every_cell(core["cells"]))
    missing = [part for part in PARTS if part not in found and part != "uncertified"]
    if missing:
        sections.append(f"Not measured on this date: {', '.join(missing)}.")
    return "\n\n".join(section.strip() for section in sections if section) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=REPOSITORY / "bench" / "results")
    parser.add_argument("--date")
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs")
    options = parser.parse_args()
    date, found = load(options.folder, options.date)
    pictures = options.docs / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    report_plots.demands(found["core"]["cells"], pictures / "gpu_demands.svg")
    if "peers" in found:
        report_plots.lengths(found["peers"]["cells"], pictures / "gpu_lengths.svg")
    page = options.docs / "gpu_benchmarks.md"
    page.write_text(document(date, found))
    print(f"written: {page}")


if __name__ == "__main__":
    main()
