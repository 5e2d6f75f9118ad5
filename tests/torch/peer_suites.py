"""The tests of torchsort and torchisotonic, from their source distributions, with isofold's shims in their
place."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

CACHE = Path(__file__).parents[2] / ".cache" / "peers"
REQUIREMENTS = Path(__file__).with_name("peers.txt")


@cache
def source(name: str) -> Path:
    """The folder of a package's source distribution, fetched by pip where it is not there yet; hashes are
    pinned."""
    pinned = [line.split() for line in REQUIREMENTS.read_text().splitlines() if line.startswith(f"{name}==")]
    version = pinned[0][0].removeprefix(f"{name}==")
    folder = CACHE / f"{name}-{version}"
    if not folder.is_dir():
        archive = folder.with_name(f"{folder.name}.tar.gz")
        if not archive.exists():
            # Without isolation: asking torchsort for its metadata would fetch another torch.
            options = ["--no-deps", "--no-binary=:all:", "--no-build-isolation", "--require-hashes", "-q"]
            where = ["-d", str(CACHE), "-r", str(REQUIREMENTS)]
            subprocess.run([sys.executable, "-m", "pip", "download", *options, *where], check=True)
        with tarfile.open(archive) as tar:
            tar.extractall(CACHE, filter="data")
    return folder


@contextmanager
def _in_place_of(name: str, shim: ModuleType) -> Iterator[None]:
    before = sys.modules.get(name)
    sys.modules[name] = shim
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


def _uses(node: ast.stmt, left_out: frozenset[str]) -> bool:
    """Whether it is an import of one of these modules, or one of these tests."""
    if isinstance(node, ast.ImportFrom):
        return any(f"{node.module}.{alias.name}" in left_out for alias in node.names)
    return isinstance(node, ast.FunctionDef) and node.name in left_out


def suite(package: str, file: str, left_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The tests in a file of a package, with the shim in its place, by name. What is left out, modules that
    are not to be had and the tests that use them, must be there, so that it is the file that is meant."""
    shim = importlib.import_module(f"isofold.compat.{package}")
    path = source(package) / "tests" / file
    tree = ast.parse(path.read_text(), filename=str(path))
    kept = [node for node in tree.body if not _uses(node, left_out)]
    if len(kept) + len(left_out) != len(tree.body):
        raise LookupError(f"{path} has not all of {sorted(left_out)}")
    tree.body = kept
    module = ModuleType(f"{package}_{path.stem}")
    module.__file__ = str(path)
    sys.path.insert(0, str(path.parent))
    try:
        with _in_place_of(package, shim):
            # hypothesis looks a test's module up.
            sys.modules[module.__name__] = module
            exec(compile(tree, str(path), "exec"), module.__dict__)
    finally:
        sys.path.remove(str(path.parent))
    return {name: test for name, test in vars(module).items() if name.startswith("test_")}
