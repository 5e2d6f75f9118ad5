"""What the README tells a new user to type works, and prints what stands beside it."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

README = (Path(__file__).parents[3] / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.split("\n")[1])
def test_python_prints_its_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(block, {})
    shown = re.findall(r"^print\(.*\) +# (\[[^\]]*\])", block, re.MULTILINE)
    assert shown
    assert printed.getvalue().splitlines() == shown


def test_shell_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testing = pytest.importorskip("typer.testing")
    pytest.importorskip("matplotlib")
    from isofold.cli.app import app

    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    for name in ("history", "later", "today"):
        scores = random.random(3000)
        lines = [f"{s:.3f},{random.random() < s},{'NS'[int(s * 1e6) % 2]}" for s in scores.tolist()]
        Path(f"{name}.csv").write_text("\n".join(["your_score,is_fraud,region", *lines]) + "\n")
    commands = [shlex.split(line, comments=True) for block in SHELL[:2] for line in block.splitlines()]
    assert [command[1] for command in commands] == ["calibrate", "report", "apply", "audit"]
    for command in commands:
        result = testing.CliRunner().invoke(app, command[1:])
        assert (result.exit_code, result.stderr) == (0, "")
    assert Path("calibrated.csv").read_text().startswith("your_score,is_fraud,region,calibrated\n")
    written = {"curves.json", "fit.html", "later.html", "calibrated.csv", "audit.html"}
    assert {path.name for path in tmp_path.iterdir()} == {"history.csv", "later.csv", "today.csv", *written}
