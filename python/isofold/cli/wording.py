"""How the commands word counts, lists and near misses."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_MOST_SHOWN = 12


def counted(number: int, noun: str) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shortened(names: Sequence[str]) -> str:
    """A list of names, cut off after some."""
    return ", ".join(names[:_MOST_SHOWN]) + (", ..." if len(names) > _MOST_SHOWN else "")


def _bare(name: str) -> str:
    """Without case, spaces and what joins words."""
    return re.sub(r"[\W_]+", "", name.casefold())


def near_miss(name: str, names: Sequence[str]) -> str | None:
    """The one of `names` that was probably meant: the same but for case and spaces, or a slip of the hand."""
    same = [other for other in names if _bare(other) == _bare(name)]
    close = same or difflib.get_close_matches(name, names, n=1, cutoff=0.8)
    return close[0] if close else None
