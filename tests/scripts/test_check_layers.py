"""scripts/check_layers.py passes the tree as it is and fails on each kind of fault."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_layers.py"

TARGETS = {
    "exact": "isofold_add_layer(exact)",
    "geometry": "isofold_add_layer(geometry DEPENDS exact)",
    "algorithm": "isofold_add_layer(algorithm DEPENDS geometry)",
    "reference": "isofold_add_layer(reference DEPENDS algorithm)",
    "cpu": "isofold_add_layer(cpu DEPENDS algorithm)",
    "cuda": "isofold_add_layer(cuda DEPENDS algorithm SOURCES ${cuda_sources})",
    "api": "isofold_add_layer(api DEPENDS reference cpu cuda)",
}


def check(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, root], capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree without a fault: a header in every layer, a public header, a binding."""
    for layer, target in TARGETS.items():
        folder = tmp_path / "src" / layer
        folder.mkdir(parents=True)
        (folder / "CMakeLists.txt").write_text(target + "\n")
        (folder / f"{layer}_part.hpp").write_text('#include <vector>\n#include "isofold/rows.hpp"\n')
    public = tmp_path / "include" / "isofold"
    public.mkdir(parents=True)
    (public / "rows.hpp").write_text("#include <cstdint>\n")
    bindings = tmp_path / "bindings" / "python"
    bindings.mkdir(parents=True)
    (bindings / "module.cpp").write_text('#include "isofold/rows.hpp"\n')
    return tmp_path


def test_the_repository_passes() -> None:
    result = check(ROOT)
    assert result.returncode == 0, result.stdout


def test_a_tree_without_a_fault_passes(tree: Path) -> None:
    (tree / "src/cpu/merge.cpp").write_text(
        '#include "cpu/cpu_part.hpp"\n'
        '#include "algorithm/algorithm_part.hpp"\n'
        '#include "exact/exact_part.hpp"\n'
    )
    (tree / "src/api/fit.cpp").write_text(
        '#include "cpu/cpu_part.hpp"\n#include "reference/reference_part.hpp"\n'
    )
    result = check(tree)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("path", "line", "fault"),
    [
        ("src/exact/a.hpp", '#include "geometry/geometry_part.hpp"', "exact may not include geometry"),
        ("src/geometry/a.hpp", '  #  include "cpu/cpu_part.hpp"', "geometry may not include cpu"),
        ("src/cpu/a.cpp", '#include "reference/reference_part.hpp"', "cpu may not include reference"),
        ("src/reference/a.cpp", '#include "cpu/cpu_part.hpp"', "reference may not include cpu"),
        (
            "src/reference/a.cpp",
            '#include "geometry/geometry_part.hpp"',
            "reference may not include geometry",
        ),
        ("src/cpu/a.cpp", '#include "api/api_part.hpp"', "cpu may not include api"),
        ("src/cpu/a.cpp", '#include "cpu_part.hpp"', "not written relative to src/"),
        ("src/cpu/a.cpp", '#include "../api/api_part.hpp"', "not written relative to src/"),
        ("src/cpu/a.cpp", '#include "cpu/gone.hpp"', "no file src/cpu/gone.hpp"),
        ("src/cpu/a.cpp", '#include "isofold/gone.hpp"', "no public header isofold/gone.hpp"),
        ("src/cpu/a.cpp", "#include <exact/exact_part.hpp>", 'write #include "exact/exact_part.hpp"'),
        ("src/a.hpp", "#include <vector>", "not in a layer"),
        ("src/extra/a.hpp", "#include <vector>", "not in a layer"),
        ("include/isofold/a.hpp", '#include "exact/exact_part.hpp"', "is internal"),
        ("bindings/python/a.cpp", '#include "cpu/cpu_part.hpp"', "is internal"),
    ],
)
def test_a_fault_is_found_and_placed(tree: Path, path: str, line: str, fault: str) -> None:
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text(f"// A comment.\n{line}\n")
    result = check(tree)
    assert result.returncode == 1
    assert fault in result.stdout
    assert result.stdout.startswith(path)


@pytest.mark.parametrize("depends", ["DEPENDS algorithm cpu", "DEPENDS exact", ""])
def test_targets_that_disagree_are_found(tree: Path, depends: str) -> None:
    (tree / "src/reference/CMakeLists.txt").write_text(f"isofold_add_layer(reference {depends})\n")
    result = check(tree)
    assert result.returncode == 1
    assert "reference depends on" in result.stdout


def test_an_empty_tree_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert check(tmp_path).returncode == 2
