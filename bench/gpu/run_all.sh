#!/bin/bash
# bench/gpu/run_all.sh --packages DIR --out DIR [--site DIR] [--python PYTHON] [--time-gpu PROGRAM]
#                      [--uncertified PROGRAM] [--prototype PROGRAM] [--huge] [--parts LIST] [--date DATE]
#
# On a machine with a GPU, torch and the CUDA toolkit, without a network: installs isofold, torchisotonic and torchsort
# from DIR into a folder of its own (torchsort's source distribution is compiled unless a wheel of it is there and
# loads), runs every GPU benchmark, and writes gpu-<date>*.json and a log into --out. A part that fails is named at the
# end; the others run all the same.
# --time-gpu, --uncertified: built elsewhere; without them they are built here by CMake, which takes minutes.
# --parts: of core,certification,prototype,peers,accuracy,traffic; all by default.
set -euo pipefail
cd "$(dirname "$0")/../.."

packages="" out="" site="${TMPDIR:-/tmp}/isofold-bench" python=python3 core="" uncertified="" prototype="" date="$(date +%F)"
huge=() parts=core,certification,prototype,peers,accuracy,traffic
while (($#)); do
  case "$1" in
    --packages) packages="$(realpath "$2")"; shift ;;
    --out) out="$2"; shift ;;
    --site) site="$2"; shift ;;
    --python) python="$2"; shift ;;
    --time-gpu) core="$(realpath "$2")"; shift ;;
    --uncertified) uncertified="$(realpath "$2")"; shift ;;
    --prototype) prototype="$(realpath "$2")"; shift ;;
    --huge) huge=(--huge) ;;
    --parts) parts="$2"; shift ;;
    --date) date="$2"; shift ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
if [ -z "$packages" ] || [ -z "$out" ]; then echo "--packages and --out are needed" >&2; exit 2; fi
mkdir -p "$out" "$site"
out="$(realpath "$out")"
site="$(realpath "$site")"
exec > >(tee "$out/gpu-$date.log") 2>&1

export PYTHONPATH="$site" PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 TORCH_EXTENSIONS_DIR="$site/extensions"
commit="${ISOFOLD_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)}"
base="$out/gpu-$date"
failed=()

wanted() { [[ ",$parts," == *",$1,"* ]]; }

# part NAME SECONDS COMMAND...
part() {
  local name="$1" limit="$2" start=$SECONDS status=0
  shift 2
  echo "==== $name"
  timeout "$limit" "$@" || status=$?
  echo "==== $name: $((SECONDS - start)) s, exit status $status"
  if ((status)); then failed+=("$name"); fi
}

install_packages() {
  "$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target "$site" "$packages"/*.whl
  # A wheel of torchsort fits one torch and one Python only; its setup.py imports torch and looks for nvcc.
  if "$python" -c "import torch, torchsort.isotonic_cpu, torchsort.isotonic_cuda" 2>/dev/null; then return; fi
  "$python" -m pip install -q --no-index --no-deps --no-build-isolation --no-compile --no-cache-dir --upgrade \
    --target "$site" "$packages"/torchsort-*.tar.gz
}

export CUDA_HOME="${CUDA_HOME:-$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")")}"
export PATH="$CUDA_HOME/bin:$PATH" MAX_JOBS="${MAX_JOBS:-8}"
TORCH_CUDA_ARCH_LIST="${TORCH_CUDA_ARCH_LIST:-$("$python" -c \
  'import torch; print("%d.%d" % torch.cuda.get_device_capability() if torch.cuda.is_available() else "9.0")')}"
export TORCH_CUDA_ARCH_LIST
# A toolkit without the libraries' headers: torch's own packages may have them.
headers="$("$python" -c 'import os, torch; print(os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia/cu13/include"))')"
if ! [ -e "$CUDA_HOME/include/cusparse.h" ] && [ -e "$headers/cusparse.h" ]; then export CPATH="$headers${CPATH:+:$CPATH}"; fi

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.mem --format=csv 2>/dev/null || echo "no nvidia-smi"
part install 300 bash -c "$(declare -f install_packages); python='$python' site='$site' packages='$packages'; set -e; install_packages"
# torchisotonic compiles when it is first used.
part compile 300 "$python" -c "import torchisotonic._ext as e; e._load(); import torchsort.ops, isofold.torch"

if { wanted core || wanted certification; } && { [ -z "$core" ] || [ -z "$uncertified" ]; }; then
  build=build/gpu-bench
  part build 500 bash -c "cmake -S . -B $build -DCMAKE_BUILD_TYPE=Release -DISOFOLD_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native \
    -DISOFOLD_BUILD_TESTS=OFF -DISOFOLD_BUILD_GPU_TESTS=ON -DISOFOLD_CURVES=OFF -DISOFOLD_INSTALL=OFF -DISOFOLD_BUILD_UNCERTIFIED=ON &&
    cmake --build $build -j $(nproc) --target time_gpu time_gpu_uncertified"
  core="${core:-$build/tests/cuda/time_gpu}" uncertified="${uncertified:-$build/tests/cuda/time_gpu_uncertified}"
fi

if wanted core; then part core 240 "$core" --json "$base.json" --commit "$commit"; fi
if wanted certification; then
  part certification 150 "$python" bench/gpu/certification.py "$core" "$uncertified" --json "$base-certification.json" --commit "$commit"
fi
if wanted prototype && [ -n "$prototype" ]; then
  part prototype 240 "$python" bench/gpu/prototype.py "$prototype" --json "$base-prototype.json"
fi
if wanted peers; then
  part peers 300 "$python" bench/gpu/peers.py --json "$base-peers.json" --commit "$commit" "${huge[@]}"
fi
if wanted accuracy; then
  part accuracy 240 "$python" bench/gpu/measure_accuracy.py --json "$base-accuracy.json" --commit "$commit"
fi
if wanted traffic; then
  if command -v ncu >/dev/null; then
    part traffic 150 "$python" bench/gpu/traffic.py --json "$base-traffic.json" --commit "$commit"
  else
    echo "no ncu: bytes moved are not counted"
  fi
fi
echo "==== $SECONDS s in all; failed: ${failed[*]:-none}"
echo "tables and plots: python bench/gpu/report.py $out"
((${#failed[@]} == 0))
