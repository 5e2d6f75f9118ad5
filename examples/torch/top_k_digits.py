"""A classifier of handwritten digits that is to have the right one among its k best, trained on a soft top-k.

    python examples/torch/top_k_digits.py [--k 3]

scikit-learn's digits: 1,797 pictures of 8 x 8. Half of the training labels are replaced by random ones,
which cross entropy tries to believe; being among the k best asks less. Beside it stands the same model
trained on cross entropy. A minute on a CPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from losses import top_k_accuracy, top_k_loss
from sklearn.datasets import load_digits
from torch import Tensor, nn


def data(noise: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(training pictures and labels, test pictures and labels)"""
    pictures, digits = load_digits(return_X_y=True)
    x, y = torch.tensor(pictures, dtype=torch.float32) / 16, torch.tensor(digits)
    order = torch.randperm(len(x))
    test, train = order[:500], order[500:]
    labels = y[train]
    wrong = torch.rand(len(labels)) < noise
    labels = torch.where(wrong, torch.randint(0, 10, labels.shape), labels)
    return x[train], labels, x[test], y[test]


def train(
    loss: Callable[[Tensor, Tensor], Tensor], k: int, epochs: int, noise: float = 0.5, seed: int = 0
) -> float:
    """The share of test digits that are among the model's k best."""
    torch.manual_seed(seed)
    x, y, test_x, test_y = data(noise)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        for batch in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            loss(model(x[batch]), y[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        return top_k_accuracy(model(test_x), test_y, k)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    losses: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        f"soft top-{options.k}": lambda logits, labels: top_k_loss(logits, labels, options.k, strength=10),
        "cross entropy": nn.functional.cross_entropy,
    }
    for name, loss in losses.items():
        found = [train(loss, options.k, options.epochs, seed=seed) for seed in range(options.seeds)]
        print(f"trained on {name}: {sum(found) / len(found):.1%} of digits are among the {options.k} best")


if __name__ == "__main__":
    main()
