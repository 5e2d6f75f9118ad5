"""The examples, run small: that they run, and that what they train learns."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples" / "torch"
MODULES = ("losses", "spearman", "top_k_digits", "training_step")


@pytest.fixture(scope="module")
def examples() -> Iterator[dict[str, ModuleType]]:
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(EXAMPLES))
        for name in MODULES:
            sys.modules.pop(name, None)


def test_losses(examples: dict[str, ModuleType]) -> None:
    losses = examples["losses"]
    scores = torch.tensor([[3.0, 1, 2], [5, 7, 9]], requires_grad=True)
    assert losses.ranks(scores).tolist() == [[3, 1, 2], [1, 2, 3]]
    assert losses.spearman(scores, -scores).tolist() == pytest.approx([-1, -1])
    loss = losses.spearman_loss(scores, torch.tensor([[3.0, 1, 2], [3, 2, 1]]), strength=1e-3)
    assert loss.item() == pytest.approx(1)  # 0 for the first row, 2 for the second
    assert losses.top_k_loss(scores, torch.tensor([0, 0]), 2, strength=1e-3).item() == 0.5
    assert losses.top_k_accuracy(scores, torch.tensor([0, 0]), 2) == 0.5


def test_spearman(examples: dict[str, ModuleType]) -> None:
    module = examples["spearman"]
    assert module.train(module.rank_error, epochs=8, seed=0) > 0.5


@pytest.mark.parametrize("ragged", [False, True])
def test_training_step(examples: dict[str, ModuleType], ragged: bool) -> None:
    train = examples["training_step"].train
    _, before = train(queries=30, length=12, steps=0, ragged=ragged)
    _, after = train(queries=30, length=12, steps=80, ragged=ragged)
    assert after > max(0.6, before)


def test_top_k_digits(examples: dict[str, ModuleType]) -> None:
    module = examples["top_k_digits"]

    def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = examples["losses"].top_k_loss(logits, labels, 3, strength=10)
        return found

    assert module.train(loss, 3, epochs=4, noise=0) > 0.9


@pytest.mark.parametrize(
    ("name", "arguments", "printed"),
    [
        ("spearman", ["--epochs=1", "--seeds=1"], "trained on soft ranks: Spearman's correlation"),
        ("training_step", ["--queries=5", "--length=6", "--steps=2", "--ragged"], "a step takes"),
        ("top_k_digits", ["--epochs=1", "--seeds=1"], "trained on soft top-3: "),
    ],
)
def test_command_lines(
    examples: dict[str, ModuleType],
    name: str,
    arguments: list[str],
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    examples[name].main()
    assert printed in capsys.readouterr().out
