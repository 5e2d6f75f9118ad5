"""The tables of docs/gpu_benchmarks.md, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import report_text as text
from cells import FLAG_BYTES, Cell
from judgement import by_cell, checks, floor_of, judged, scratch_share
from traffic import STALLS

Record = dict[str, Any]
CONTENDERS = ("isofold", "torchisotonic", "torchsort", "copy")
STAGED = (
    Cell("noise", 1, 100_000_000),
    Cell("increasing", 1, 100_000_000),
    Cell("noise", 1, 1_000_000),
    Cell("noise", 10_000, 1_000),
)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], words: int = 1) -> str:
    """`words`: how many columns at the left hold words; the others are figures."""
    heads = list(head)
    marks = ["---" if i < words else "---:" for i in range(len(heads))]
    lines = [heads, marks, *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ms(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 100 else f"{figure:.3g}" if figure >= 1 else f"{figure:.3f}"


def spread(quartiles: list[float]) -> str:
    low, median, high = quartiles
    return f"{ms(median)} ({ms(low)}-{ms(high)})"


def times(figure: float | None) -> str:
    return "" if figure is None else f"{figure:.1f}x" if figure >= 10 else f"{figure:.2f}x"


def demands(records: list[Record]) -> str:
    rows = []
    known = by_cell(records)
    for one in judged(records):
        cell, record = one.demand.cell, one.record
        lead = [cell.size, cell.name]
        ends = [
            times(one.ratio),
            one.demand.against,
            f"{one.demand.must:g}x",
            f"{one.demand.aim:g}x",
            one.verdict,
        ]
        if record is None:
            rows.append([*lead, "", "", *ends])
            continue
        least = floor_of(record, known)
        above = "" if least is None else times(record["ms"][1] / least)
        rows.append([*lead, spread(record["ms"]), above, *ends])
    reached = [one.verdict for one in judged(records)]
    summary = (
        f"{len(reached)} demands: {reached.count('aim reached')} reach the aim, "
        f"{reached.count('pass')} more pass, {reached.count('miss')} miss, "
        f"{reached.count('not measured')} not measured."
    )
    head = ("rows", "what", "ms", "to the floor", "ratio", "to", "must reach", "aim", "")
    return f"{text.DEMANDS}\n\n{table(head, rows, 2)}\n\n{summary}"


def other_demands(found: dict[str, Record]) -> str:
    rows = ([check.what, check.figure, check.asked, check.verdict] for check in checks(found))
    return table(("what", "figure", "asked", ""), rows, 4)


def peers(figures: Record) -> str:
    parts = [text.PEERS.format(rounds=figures["rounds"], torch=figures["torch"])]
    for of, title in (
        ("calls", ""),
        ("replays", "The solvers alone, captured once as a graph and replayed:\n\n"),
    ):
        rows = []
        for cell, record in by_cell(figures["cells"]).items():
            taken = record.get(of)
            if not taken:
                continue
            row = [cell.size, cell.name]
            row += [spread(taken[name]["ms"]) if name in taken else "" for name in CONTENDERS]
            row.append(times(taken["isofold"]["to_copy"][1]))
            row += [times(taken[n]["to_isofold"][1]) if n in taken else "" for n in CONTENDERS[1:3]]
            rows.append(row)
        if rows:
            heads = (
                "rows",
                "what",
                *CONTENDERS,
                "isofold / copy",
                "torchisotonic / isofold",
                "torchsort / isofold",
            )
            parts.append(title + table(heads, rows, 2))
    return "\n\n".join(parts)


def stages(figures: Record) -> str:
    known = by_cell(figures["cells"])
    parts = [text.STAGES]
    for cell in STAGED:
        record = known.get(cell, {})
        rows = []
        for name in CONTENDERS[:2]:
            stages = record.get("stages", {}).get(name, [])
            if stages:
                launched = sum(stage["launches"] for stage in stages)
                whole = sum(stage["microseconds"] for stage in stages)
                rows.append([name, "all", f"{launched:g}", f"{whole:.1f}"])
            for stage in stages:
                rows.append(
                    ["", f"`{stage['name']}`", f"{stage['launches']:g}", f"{stage['microseconds']:.1f}"]
                )
        if rows:
            head = ("", "stage", "launches", "microseconds")
            parts.append(f"{cell.size} {cell.name}:\n\n{table(head, rows, 2)}")
    return "\n\n".join(parts) if len(parts) > 1 else ""


def memory(figures: Record) -> str:
    rows = []
    for cell, record in by_cell(figures["cells"]).items():
        if "memory" not in record or not cell.is_fit:
            continue
        row = [cell.size, cell.name]
        for name in CONTENDERS[:3]:
            taken = record["memory"].get(name)
            if taken is None:
                row.append("")
                continue
            flags = FLAG_BYTES * record["elements"] if name == "isofold" else 0
            row.append(
                f"{(taken['peak_bytes'] - taken['result_bytes'] - flags) / (4 * record['elements']):.2f}"
            )
        rows.append(row)
    if not rows:
        return ""
    return f"{text.MEMORY}\n\n{table(('rows', 'what', *CONTENDERS[:3]), rows, 2)}"


def traffic(figures: Record) -> str:
    rows = []
    for call in figures["calls"]:
        cell = Cell.of(call)
        moved = call["read_bytes"] + call["written_bytes"]
        row = [cell.size, cell.name, call["contender"]]
        row += [f"{call[name] / 1e6:.0f}" for name in ("read_bytes", "written_bytes", "floor_bytes")]
        rows.append([*row, times(moved / call["floor_bytes"])])
    head = ("rows", "what", "", "read, MB", "written, MB", "floor, MB", "moved / floor")
    return f"{text.TRAFFIC}\n\n{table(head, rows, 3)}\n\n{binds(figures)}"


def binds(figures: Record) -> str:
    """Of isofold's calls the kernels that take a tenth of the time or more, and what they wait for."""
    rows = []
    for call in figures["calls"]:
        if call["contender"] != "isofold" or "warps" not in call["stages"][0]:
            continue
        cell = Cell.of(call)
        whole = sum(stage["nanoseconds"] for stage in call["stages"])
        for stage in call["stages"]:
            if stage["nanoseconds"] < whole / 10:
                continue
            stalls = sorted(STALLS, key=stage.__getitem__, reverse=True)[:3]
            waits = ", ".join(
                f"{name.replace('_', ' ')} {100 * stage[name] / stage['warp_latency']:.0f}%"
                for name in stalls
            )
            rows.append(
                [cell.size, cell.name, f"`{stage['name']}`", f"{stage['nanoseconds'] / 1e3:.0f}"]
                + [f"{stage['instructions'] / 1e6:.1f}", f"{stage['warps']:.0f}"]
                + [f"{stage[name]:.0f}%" for name in ("issue_percent", "memory_percent")]
                + [waits]
            )
    if not rows:
        return ""
    head = ("rows", "what", "kernel", "us", "instructions, M", "warps", "issue", "memory", "waits for")
    return f"{text.BINDS}\n\n{table(head, rows, 3)}"


MEASURES = ("step_down", "deviation", "objective", "kkt")
CANCELLING = ("step_down", "deviation_to_largest")
ACCURACY_ORDER = ("isofold", "torchisotonic", "scikit-learn", "SciPy, float64")


def worst(lines: list[Record], names: Iterable[str]) -> list[str]:
    return [f"{max(line[name] for line in lines):.1e}" if lines else "" for name in names]


def accuracy(figures: Record) -> str:
    all_lines = figures["lines"]
    lines = [line for line in all_lines if not line["shape"].startswith("cancellation")]
    cancelling = [line for line in all_lines if line not in lines]

    def of(chosen: list[Record], **wanted: str) -> list[Record]:
        return [line for line in chosen if all(line[name] == value for name, value in wanted.items())]

    order = [name for name in ACCURACY_ORDER if of(all_lines, contender=name)]
    dtypes = ("float32", "float64")
    shapes = list(dict.fromkeys(line["shape"] for line in lines))
    overall = [
        [dtype, name, *worst(of(lines, dtype=dtype, contender=name), MEASURES)]
        for dtype in dtypes
        for name in order
    ]
    by_family = [
        [dtype, shape]
        + [
            cell
            for name in order
            for cell in worst(of(lines, dtype=dtype, shape=shape, contender=name), ["deviation"])
        ]
        for dtype in dtypes
        for shape in shapes
    ]
    cancelled = [
        [dtype, name, *worst(of(cancelling, dtype=dtype, contender=name), CANCELLING)]
        for dtype in dtypes
        for name in order
    ]
    cases = len({(line["shape"], line["length"], line["dtype"], line["weights"]) for line in lines})
    parts = [
        text.ACCURACY.format(cases=cases, shapes=", ".join(shapes)),
        table(("type", "", *(name.replace("_", " ") for name in MEASURES)), overall, 2),
        text.DEVIATIONS,
        table(("type", "family", *order), by_family, 2),
    ]
    if cancelling:
        head = ("type", "", "step down", "deviation to the largest value")
        parts += [text.CANCELLATION, table(head, cancelled, 2)]
    return "\n\n".join(parts)


def certification(figures: Record) -> str:
    rows = []
    for line in figures["cells"]:
        cell = Cell.of(line)
        with_it, without = (
            sorted(line[kind])[len(line[kind]) // 2] for kind in ("certified_ms", "uncertified_ms")
        )
        rows.append([cell.size, cell.name, ms(with_it), ms(without), f"{100 * (line['cost'] - 1):.0f}%"])
    head = ("rows", "what", "certified", "not", "cost")
    return f"{text.CERTIFICATION}\n\n{table(head, rows, 2)}"


def prototype(records: list[Record], figures: Record) -> str:
    known = by_cell(records)
    rows = []
    for other in figures["cells"]:
        cell = Cell(other["shape"], other["rows"], other["length"])
        record = known.get(cell)
        theirs = [ms(other["ms"]), times(other["ms"] / other["copy_ms"])]
        if record is None:
            rows.append([cell.size, cell.name, "", "", *theirs, ""])
            continue
        own = record["ms"][1]
        ours = [ms(own), times(own / record["copy_ms"][1])]
        rows.append([cell.size, cell.name, *ours, *theirs, times(own / other["ms"])])
    head = ("rows", "what", "ms", "to the copy", "prototype, ms", "to its copy", "ratio")
    return f"{text.PROTOTYPE}\n\n{table(head, rows, 2)}"


def every_cell(records: list[Record]) -> str:
    rows = []
    for record in records:
        cell = Cell.of(record)
        other = record.get("copy_ms") or record["fit_ms"]
        launches = str(record.get("launches", ""))
        share = f"{scratch_share(record):.2f}"
        kind = "copy" if "copy_ms" in record else "fit"
        rows.append(
            [
                cell.size,
                cell.name,
                spread(record["ms"]),
                times(record["ms"][1] / other[1]),
                kind,
                launches,
                share,
            ]
        )
    head = ("rows", "what", "ms", "ratio", "to", "launches", "scratch / float32 input")
    return f"{text.EVERY_CELL}\n\n{table(head, rows, 2)}"
