"""A model that orders patients by the progress of their disease, trained with a Spearman loss.

    python examples/torch/spearman.py

scikit-learn's diabetes data: 442 patients, ten measurements each. Only the order of the scores is asked for,
so that order is what is trained, in batches. To show what that is worth, progress is given on a scale that
stretches its upper end: an order does not notice, squared errors, with which the same model is trained beside
it, look at little else. Half a minute on a CPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from losses import ranks, spearman, spearman_loss
from sklearn.datasets import load_diabetes
from torch import Tensor, nn


def data() -> tuple[Tensor, Tensor]:
    """Measurements and stretched progress, standardised."""
    features, target = load_diabetes(return_X_y=True, scaled=False)
    x = torch.tensor(features, dtype=torch.float32)
    y = torch.tensor(target / 40, dtype=torch.float32).exp()
    return (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()


def rank_error(scores: Tensor, target: Tensor) -> Tensor:
    return spearman_loss(scores, ranks(target), strength=0.03)


def train(loss: Callable[[Tensor, Tensor], Tensor], epochs: int, seed: int) -> float:
    """Spearman's correlation on a fifth of the patients that the model has not seen."""
    torch.manual_seed(seed)
    x, y = data()
    order = torch.randperm(len(x))
    held_out, seen = order[: len(x) // 5], order[len(x) // 5 :]
    model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    for _ in range(epochs):
        for batch in seen[torch.randperm(len(seen))].split(64):
            optimizer.zero_grad()
            loss(model(x[batch]).squeeze(-1), y[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        return float(spearman(model(x[held_out]).squeeze(-1), y[held_out]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    for name, loss in (("soft ranks", rank_error), ("squared errors", nn.functional.mse_loss)):
        found = [train(loss, options.epochs, seed) for seed in range(options.seeds)]
        print(f"trained on {name}: Spearman's correlation {sum(found) / len(found):.3f}, on unseen patients")


if __name__ == "__main__":
    main()
