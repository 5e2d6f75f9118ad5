"""What is asked of isofold on one processor, and whether a run shows it."""

from __future__ import annotations

from typing import Any

from rich.console import Console

FAMILIES = ("noise", "increasing", "binary")
Case = dict[str, Any]
Verdict = dict[str, Any]


def judge(cases: list[Case]) -> list[Verdict]:
    """One verdict for each demand and case. Medians of ratios within rounds, all fields read."""
    verdicts: list[Verdict] = []
    for case in cases:
        if case["family"] not in FAMILIES:
            continue
        one, two = case["times"]["isofold, 1 thread"], case["times"]["isofold, 2 threads"]
        figures = {
            "one thread's time to SciPy's": one["all"]["to_scipy"]["median"],
            "two threads' time to one's": two["to_one_thread"]["all"]["median"],
        }
        if "memory" in case:
            extra = [case["memory"][name][when] for name in ("isofold_1", "isofold_2") for when in WHEN]
            figures["memory beyond input and output to input"] = max(extra)
        for demand, figure in figures.items():
            verdicts.append(
                {
                    "family": case["family"],
                    "n": case["n"],
                    "demand": f"{demand}, at most 1",
                    "figure": figure,
                    "holds": figure <= 1.0,
                }
            )
    return verdicts


WHEN = ("beyond_fit", "beyond_all")


def print_verdicts(console: Console, verdicts: list[Verdict], cases: list[Case]) -> None:
    for verdict in verdicts:
        sign = "[green]holds[/green]" if verdict["holds"] else "[red]does not hold[/red]"
        console.print(
            f"{sign}: {verdict['family']}, {verdict['n']:,}: {verdict['demand']}: {verdict['figure']:.2f}",
            highlight=False,
        )
    slower = [
        f"{case['family']} at {case['n']:,} ({figure:.2f})"
        for case in cases
        if case["family"] not in FAMILIES
        and (figure := case["times"]["isofold, 1 thread"]["all"]["to_scipy"]["median"]) > 1.0
    ]
    console.print(f"slower than SciPy elsewhere: {', '.join(slower) or 'nowhere'}", highlight=False)
