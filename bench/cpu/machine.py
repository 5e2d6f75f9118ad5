"""What a figure depends on: processor, memory settings, versions, compiler, commit. No host, no path."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
# What the installed package is built from.
SOURCES = ("CMakeLists.txt", "bindings", "cmake", "include", "pyproject.toml", "python", "src")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _vector_units() -> str:
    flags = set(re.findall(r"\S+", Path("/proc/cpuinfo").read_text()))
    return next((name for name in ("avx512f", "avx2", "avx") if name in flags), "none beyond the baseline")


def _huge_pages() -> str:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    found = re.search(r"\[(\w+)\]", setting.read_text()) if setting.exists() else None
    return found.group(1) if found else "unknown"


def _compiler() -> str:
    """The one that built the installed module, which its binary names."""
    from isofold import _native

    binary = Path(str(_native.__file__)).read_bytes()
    found = re.search(rb"GCC: \([^)\0]*\) [\d.]+|clang version [\d.]+", binary)
    return found.group().decode() if found else "unknown"


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(REPOSITORY), *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout.strip()


def _commit() -> str:
    try:
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", *SOURCES)
        return _git("rev-parse", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "vector_units": _vector_units(),
        "processors": len(os.sched_getaffinity(0)),
        "transparent_huge_pages": _huge_pages(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in ("isofold", "numpy", "scipy", "scikit-learn")},
        "compiler": _compiler(),
        "commit": _commit(),
    }
