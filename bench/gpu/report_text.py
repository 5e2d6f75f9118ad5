"""What docs/gpu_benchmarks.md says between its tables."""

HEAD = """# On a GPU

Made by `python bench/gpu/report.py` from [bench/results](../bench/results), date {date}: {device}, commit
{commit}. How it was measured: [bench/README.md](../bench/README.md). Times are medians in milliseconds,
quartiles in brackets; ratios mean something within one run only."""

DEMANDS = """## What is asked

Whole calls of the C++ interface, outputs and scratch allocated before. The ratio is to a device copy of the
input in the same run, or to what the column says. The floor is the fewest bytes a call can move, every
input read once and every output written once, at the rate of that copy."""

PEERS = """## Beside torchisotonic and torchsort

The same tensors in one process, everybody called once a round in random order, {rounds} rounds; torch
{torch}. These are calls from Python as a user makes them, allocations and checks included; isofold's also
writes a flag an element, where blocks start. torchsort is given the negated values, as it fits decreasing
rows, and rows of up to 1e6."""

REPLAYS = "The solvers alone, captured once as a graph and replayed:"

STAGES = """## Stages and launches

Kernels, fills and copies of one call, from torch's profiler. Those that overlap count in full."""

MEMORY = """## Memory

Device memory at the peak of a call beyond input, fit and isofold's block flags, in float32 inputs of as many
elements:"""

TRAFFIC = """## Bytes moved

Between the GPU and its memory, counted by Nsight Compute. Less than the floor is possible where the cache
holds a part."""

BINDS = """## What binds

Kernels that take a tenth of a call or more, each alone on the device: warp instructions, warps that a
multiprocessor holds at once (64 at most), the share of the cycles in which instructions are issued and of the
memory's bandwidth, and the three reasons why warps wait most, as shares of their time."""

ACCURACY = """## Accuracy

The four measures of the paper (its Section 7.6): the largest step down, to the largest |y|; the largest
deviation |z - z\\*| / (1 + |z\\*|) from the exact fit; how much the objective exceeds the least,
relatively; the largest violation of the optimality conditions, to 2 sum w |y|. Worst of {cases} rows:
{shapes}; weights none, 1/2 to 3/2, and e^-8 to e^8. Judged in double-double arithmetic. SciPy computes in
float64 whatever it is given."""

DEVIATIONS = "The largest deviation by family:"

CANCELLATION = """Rows whose sums rise and fall back, 32 values of B, one of -32 B and 31 small ones in
turn, B from 1e3 to 1e12:"""

CERTIFICATION = """## What certification costs

The same kernels with and without their error bounds:"""

PROTOTYPE = """## Beside the prototype

The program the GPU algorithm was first tried in, which is not exact:"""

EVERY_CELL = "## Every cell"
