"""Check that includes point down the layers only.

    exact <- geometry <- algorithm <- {reference, cpu, cuda} <- api

The reference executor is the oracle of the other, so it stays off geometry, which the fast ones share.

`python scripts/check_layers.py [root]` prints one line a fault and exits 1 when there is any.
"""

import re
import sys
from pathlib import Path

# What a layer may include beside itself and the public headers.
MAY_INCLUDE: dict[str, frozenset[str]] = {
    "exact": frozenset(),
    "geometry": frozenset({"exact"}),
    "algorithm": frozenset({"exact", "geometry"}),
    "reference": frozenset({"exact", "algorithm"}),
    "cpu": frozenset({"exact", "geometry", "algorithm"}),
    "cuda": frozenset({"exact", "geometry", "algorithm"}),
    "api": frozenset({"exact", "geometry", "algorithm", "reference", "cpu", "cuda"}),
    "curves": frozenset(),
}

# Libraries of their own that use the public headers, with targets of their own making.
BESIDE = frozenset({"curves"})

SOURCES = frozenset({".hpp", ".cpp", ".h", ".cuh", ".cu", ".inl"})
INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>["<])(?P<path>[^">]+)[">]')
LAYER_TARGET = re.compile(
    r"isofold_add_layer\(\s*(?P<name>\w+)(?:\s+DEPENDS\s+(?P<depends>[\w\s]+?))?(?:\s+SOURCES\s[^)]*)?\s*\)"
)


def source_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def includes(path: Path) -> list[tuple[int, str, str]]:
    """(line number, opening delimiter, path) of every include in the file."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match["open"], match["path"]))
    return found


def faults_in_layers(root: Path) -> list[str]:
    faults = []
    source = root / "src"
    for path in source_files(source):
        name = path.relative_to(root)
        layer = path.relative_to(source).parts[0]
        if layer not in MAY_INCLUDE:
            faults.append(f"{name}: not in a layer; layers are {', '.join(MAY_INCLUDE)}")
            continue
        for number, opening, target in includes(path):
            where = f"{name}:{number}"
            first = target.split("/")[0]
            known = first in MAY_INCLUDE and "/" in target
            if opening == "<":
                if known or first == "isofold":
                    faults.append(f'{where}: write #include "{target}" for a file of isofold')
            elif first == "isofold":
                if not (root / "include" / target).is_file():
                    faults.append(f"{where}: no public header {target}")
            elif not known:
                faults.append(f"{where}: {target} is not written relative to src/")
            elif not (source / target).is_file():
                faults.append(f"{where}: no file src/{target}")
            elif first != layer and first not in MAY_INCLUDE[layer]:
                faults.append(f"{where}: {layer} may not include {first} ({target})")
    return faults


def faults_outside(root: Path) -> list[str]:
    """Public headers see public headers only; so do the bindings, beside their own files."""
    faults = []
    for folder in (root / "include", root / "bindings"):
        for path in source_files(folder):
            for number, _, target in includes(path):
                if target.split("/")[0] in MAY_INCLUDE and "/" in target:
                    where = f"{path.relative_to(root)}:{number}"
                    faults.append(f"{where}: {target} is internal; use the public headers")
    return faults


def faults_in_targets(root: Path) -> list[str]:
    """CMake's targets may name only what MAY_INCLUDE allows, and must reach all of it."""
    faults = []
    for layer, allowed in MAY_INCLUDE.items():
        if layer in BESIDE:
            continue
        lists = root / "src" / layer / "CMakeLists.txt"
        match = LAYER_TARGET.search(lists.read_text(encoding="utf-8")) if lists.is_file() else None
        if match is None or match["name"] != layer:
            faults.append(f"{lists.relative_to(root)}: no isofold_add_layer({layer} ...)")
            continue
        named = set((match["depends"] or "").split())
        reached = named.union(*(MAY_INCLUDE.get(lower, frozenset()) for lower in named))
        if not named <= allowed <= reached:
            faults.append(
                f"{lists.relative_to(root)}: {layer} depends on {sorted(named)}, "
                f"scripts/check_layers.py says {sorted(allowed)}"
            )
    return faults


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    if not source_files(root / "src"):
        print(f"no sources under {root / 'src'}", file=sys.stderr)
        return 2
    faults = faults_in_layers(root) + faults_outside(root) + faults_in_targets(root)
    for fault in faults:
        print(fault)
    if not faults:
        print(f"layers: {len(source_files(root / 'src'))} files, every include points down")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
