"""What an installed isofold looks like from outside."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import isofold

PROBE = """
import sys
before = set(sys.modules)
import isofold
new = {name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names
print(sorted(name for name in new if "cython" not in name))  # which NumPy's own modules register
print(sorted(name for name in sys.modules if name.startswith("isofold.")))
print("importlib.metadata" in set(sys.modules) - before)
"""


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout


def test_importing_loads_numpy_and_nothing_else() -> None:
    packages, modules, metadata = _python(PROBE).splitlines()
    assert packages == "['isofold', 'numpy']"
    own = [
        "_arrays",
        "_histogram",
        "_native",
        "_splits",
        "conjugate_gradient",
        "isotonic",
        "linear_maps",
        "segmented",
    ]
    assert modules == str([f"isofold.{name}" for name in own])
    assert metadata == "False"


def test_scipy_compatibility_needs_no_scipy() -> None:
    code = "import sys; import isofold.compat.scipy; print('scipy' in sys.modules, 'sklearn' in sys.modules)"
    assert _python(code).split() == ["False", "False"]


def test_jax_front_end_without_jax_says_what_to_install() -> None:
    code = """
import sys
sys.modules["jax"] = None
try:
    import isofold.jax
except ImportError as error:
    print(error)
"""
    assert _python(code).startswith("isofold.jax takes JAX 0.5 or newer (pip install 'isofold[jax]')")


def test_submodules_load_on_first_use() -> None:
    code = (
        "import sys, isofold\n"
        "assert 'isofold.sklearn' not in sys.modules\n"
        "print(isofold.sklearn.IsotonicRegression.__module__, isofold.compat.scipy.__name__)\n"
    )
    assert _python(code).split() == ["isofold.sklearn", "isofold.compat.scipy"]


def test_version() -> None:
    assert isofold.__version__ == importlib.metadata.version("isofold")


def test_names() -> None:
    assert set(isofold.__all__) <= set(dir(isofold))
    for name in isofold.__all__:
        assert hasattr(isofold, name)
    with pytest.raises(AttributeError, match="module 'isofold' has no attribute 'isotonic_regresion'"):
        isofold.isotonic_regresion  # noqa: B018
    with pytest.raises(AttributeError, match=r"module 'isofold\.compat' has no attribute 'numpy'"):
        isofold.compat.numpy  # noqa: B018


def test_typed_with_a_stub() -> None:
    folder = Path(isofold.__file__).parent
    assert (folder / "py.typed").is_file()
    assert (folder / "_native.pyi").is_file()


@pytest.mark.parametrize("name", ["isofold.isotonic", "isofold.sklearn", "isofold.compat.scipy"])
def test_examples_in_docstrings(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0
    assert outcome.attempted > 0 or name == "isofold.compat.scipy"


@pytest.mark.parametrize("name", ["isofold.isotonic", "isofold.sklearn", "isofold.compat.scipy"])
def test_public_functions_state_parameters_returns_and_cost(name: str) -> None:
    module = importlib.import_module(name)
    functions = [getattr(module, public) for public in module.__all__]
    own = [f for f in functions if inspect.isfunction(f) and f.__module__ == name]
    assert own
    for function in own:
        text = inspect.getdoc(function) or ""
        for section in ("Parameters", "Returns", "Raises", "Notes"):
            assert f"{section}\n{'-' * len(section)}" in text, (function.__name__, section)
        assert "O(n" in text
        for parameter in inspect.signature(function).parameters:
            assert parameter in text
