#!/bin/bash
# scripts/gpu_check.sh [--tests-only] [--huge] [--build DIR]
#
# On a machine with a GPU: builds the CUDA executor for it (a C++ compiler, CMake and the CUDA toolkit are all that is
# needed), compares it with the CPU executor bit by bit, runs compute-sanitizer on a small set, times it, and writes
# bench/results/gpu-<date>.json, beside it the times without certification. --huge: rows of up to 1e10 elements too,
# judged block by block (100 GB of device memory).
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/gpu
tests_only=0
huge=0
while (($#)); do
  case "$1" in
    --tests-only) tests_only=1 ;;
    --huge) huge=1 ;;
    --build) build="$2"; shift ;;
    *) echo "usage: scripts/gpu_check.sh [--tests-only] [--huge] [--build DIR]" >&2; exit 2 ;;
  esac
  shift
done

generator=()
if command -v ninja >/dev/null; then generator=(-G Ninja); fi
cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DISOFOLD_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native \
  -DISOFOLD_BUILD_TESTS=OFF -DISOFOLD_BUILD_GPU_TESTS=ON -DISOFOLD_CURVES=OFF -DISOFOLD_INSTALL=OFF \
  -DISOFOLD_BUILD_UNCERTIFIED="$((1 - tests_only))"
cmake --build "$build" -j "$(nproc)"

tester="$build/tests/cuda/gpu_tester"
"$tester" --cases tests/data/isotonic_cases.json --batches 200 --longest 10000000 --huge "$huge"
"$build/tests/cuda/segment_tester" --batches 400 --longest 10000000
if ((tests_only)); then exit 0; fi

for tool in memcheck racecheck initcheck synccheck; do
  echo "==== compute-sanitizer $tool"
  compute-sanitizer --tool "$tool" --error-exitcode 3 "$tester" --batches 3 --longest 9001 --seed 5 --streams 0 \
    --trees 40
  compute-sanitizer --tool "$tool" --error-exitcode 3 "$build/tests/cuda/segment_tester" --batches 6 \
    --longest 40000 --streams 0
done

mkdir -p bench/results
result="bench/results/gpu-$(date +%F).json"
commit="${ISOFOLD_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}"
"$build/tests/cuda/time_gpu" --json "$result" --commit "$commit"
echo "wrote $result"
segments="bench/results/gpu-segments-$(date +%F).json"
"$build/tests/cuda/time_segments" --json "$segments" --commit "$commit"
echo "wrote $segments"
"$build/tests/cuda/time_trees" --json "${result%.json}-trees.json" --commit "$commit"
# The same without certification: what that costs. Not exact, and a search on near ties might not end.
timeout 300 "$build/tests/cuda/time_gpu_uncertified" --cells table --gradients 0 --commit "$commit" \
  --json "${result%.json}-uncertified.json" ||
  echo "time_gpu_uncertified did not finish: what certification costs is not known" >&2
