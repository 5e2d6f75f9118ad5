"""The training step of a ranker: a scorer 32 -> 128 -> 1, and soft ranks within every query.

    python examples/torch/training_step.py [--device cuda] [--ragged]

Queries of random documents, whose true order a hidden scorer gives, with noise. With --ragged their lengths
vary, and all of them still go through one call, by offsets. Prints the time of a step, that of its soft ranks
within, and the rank correlation on queries that were not trained on. Half a minute on a CPU.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass

import torch
from losses import spearman
from torch import Tensor, nn

from isofold.torch import soft_rank

FEATURES = 32


@dataclass
class Queries:
    documents: Tensor  # shape (documents of all queries, FEATURES)
    relevance: Tensor
    offsets: Tensor  # where queries start, and the end

    def target_ranks(self) -> Tensor:
        """1 for the least relevant document of a query: soft ranks without softness."""
        return soft_rank(self.relevance.double(), regularization_strength=1e-9, offsets=self.offsets).float()


def draw(queries: int, length: int, ragged: bool, hidden: nn.Module, device: str) -> Queries:
    counts = torch.randint(2, 2 * length - 1, (queries,)) if ragged else torch.full((queries,), length)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    documents = torch.randn(int(offsets[-1]), FEATURES)
    with torch.no_grad():
        relevance = hidden(documents).squeeze(-1)
        relevance += 0.1 * relevance.std() * torch.randn(len(relevance))
    return Queries(documents.to(device), relevance.to(device), offsets.to(device))


def scorer() -> nn.Sequential:
    return nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, 1))


def loss(scores: Tensor, queries: Queries, target_ranks: Tensor) -> Tensor:
    """The mean squared error of the ranks, as parts of a query's length: 1 - Spearman's correlation but for a
    factor."""
    found = soft_rank(scores, regularization_strength=0.1, offsets=queries.offsets)
    lengths = queries.offsets.diff()
    return (((found - target_ranks) / lengths.repeat_interleave(lengths)) ** 2).mean()


def train(
    queries: int = 200,
    length: int = 50,
    steps: int = 200,
    ragged: bool = False,
    device: str = "cpu",
    seed: int = 0,
) -> tuple[float, float]:
    """(seconds of a step, Spearman's correlation on other queries)"""
    torch.manual_seed(seed)
    hidden = scorer()
    seen, unseen = (draw(queries, length, ragged, hidden, device) for _ in range(2))
    target_ranks = seen.target_ranks()
    model = scorer().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    start = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(seen.documents).squeeze(-1), seen, target_ranks).backward()
        optimizer.step()
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    taken = (time.perf_counter() - start) / max(steps, 1)
    with torch.no_grad():
        scores = model(unseen.documents).squeeze(-1).cpu()
    cuts = unseen.offsets.tolist()
    rows = [slice(a, b) for a, b in itertools.pairwise(cuts)]
    relevance = unseen.relevance.cpu()
    return taken, float(torch.stack([spearman(scores[row], relevance[row]) for row in rows]).mean())


def soft_rank_seconds(queries: int, length: int, device: str) -> float:
    """Of soft ranks and their gradient alone."""
    scores = torch.randn(queries, length, device=device, requires_grad=True)
    repeats = 20
    for i in range(repeats + 3):
        if i == 3:
            if device.startswith("cuda"):
                torch.cuda.synchronize()
            start = time.perf_counter()
        torch.autograd.grad(soft_rank(scores, regularization_strength=0.1).sum(), scores)
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / repeats


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--length", type=int, default=50, help="documents of a query, or their mean")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--ragged", action="store_true")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    taken, correlation = train(options.queries, options.length, options.steps, options.ragged, options.device)
    alone = soft_rank_seconds(options.queries, options.length, options.device)
    print(f"a step takes {1e3 * taken:.2f} ms, soft ranks and their gradient {1e3 * alone:.2f} ms")
    print(f"Spearman's correlation {correlation:.3f}, on unseen queries")


if __name__ == "__main__":
    main()
