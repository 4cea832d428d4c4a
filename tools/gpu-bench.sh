#!/bin/sh
# The measurements on this machine's GPU: gpu-bench.sh LIBRARY [options of gpu_table.py]
#
# LIBRARY is libmodefold.so. Needs PyTorch with CUDA, and CuPy for the limit of reading. Writes bench/results/gpu-NAME.md
# and .json (bench/gpu_table.py), gpu-NAME-figures.md (bench/gpu_figures.py) and, where bench/bench_gpu_small lies beside
# LIBRARY, gpu-NAME-small.txt; NAME is the GPU's, PYTHON names another python3, OUT another place. PAPERS=1 adds
# gpu-NAME-ladder.md and gpu-NAME-tensor.md with their pictures (bench/gpu_ladder.py, bench/gpu_tensor_sum.py; CUB names
# bench/peer_cub.cu, compiled).
source=$(cd "$(dirname "$0")/.." && pwd) || exit 2
[ -n "$1" ] && [ -r "$1" ] || { echo "usage: $0 LIBRARY [options of gpu_table.py]; there is no \"$1\""; exit 2; }
library=$(cd "$(dirname "$1")" && pwd)/${1##*/}
shift
python=${PYTHON:-python3}
name=$("$python" -c 'import torch; print(torch.cuda.get_device_name())' 2>/dev/null)
if [ -z "$name" ]; then
    echo "gpu-bench: skipped: $python has no PyTorch that sees a GPU"
    exit 77
fi
"$python" -c 'import cupy' 2>/dev/null || { echo "gpu-bench: skipped: $python has no CuPy, which the limit needs"; exit 77; }
out=${OUT:-$source/bench/results/gpu-$(echo "$name" | tr 'A-Z ' 'a-z-' | sed 's/^nvidia-//')}
mkdir -p "$(dirname "$out")"
status=0
"$python" "$source/bench/gpu_table.py" --library "$library" --out "$out" "$@" || status=1
"$python" "$source/bench/gpu_figures.py" --library "$library" --out "$out-figures" || status=1
if [ -n "$PAPERS" ]; then
    "$python" "$source/bench/gpu_ladder.py" --library "$library" --out "$out-ladder" || status=1
    "$python" "$source/bench/gpu_tensor_sum.py" --library "$library" --cub "${CUB:-}" --out "$out-tensor" || status=1
    "$python" "$source/bench/gpu_chart.py" "$out-ladder.json" "$out-tensor.json" || status=1
fi
small=${library%/*}/bench/bench_gpu_small
if [ -x "$small" ]; then
    "$small" | tee "$out-small.txt"
else
    echo "gpu-bench: skipped: there is no $small"
fi
[ $status -eq 0 ] && echo "written: $out*"
exit $status
