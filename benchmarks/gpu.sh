#!/bin/sh
# Measures the engine on a CUDA machine in at most 8 minutes: Bespoke-MiniCheck-7B's shape, random weights made on the
# device in bfloat16, 20 claims on each document of 700 words, with every implementation of attention.
#
#   benchmarks/gpu.sh [OUT]          one JSON file for each implementation in OUT (default: runs/gpu)
#   benchmarks/gpu.sh --toy [OUT]    the same steps on a CPU at toy size, to see that they run
#
# PYTHON names the interpreter (default: python3); the project is installed into it where it is missing.
# ATTENTION lists the implementations to measure (default: all that the engine knows).
set -u
cd "$(dirname "$0")/.." || exit 1
python=${PYTHON:-python3}
limit_s=460
began=$(date +%s)

if [ "${1:-}" = --toy ]; then
    shift
    size="--shape tiny --dtype float32 --device cpu --documents 2 --claims-per-document 3 --words 40 --repeats 2"
else
    size="--shape bespoke-7b --dtype bfloat16 --device cuda --documents 48 --claims-per-document 20 --words 700"
fi
out=${1:-runs/gpu}
mkdir -p "$out"

# Asked from elsewhere: in the checkout the import succeeds without an install.
(cd / && "$python" -c "import minicheck_eval.judge" 2>/dev/null) || "$python" -m pip install --quiet . || exit 1
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,power.limit --format=csv >"$out/machine.csv" 2>/dev/null
"$python" -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())" >"$out/torch.txt"

attentions=${ATTENTION:-$("$python" -c "from minicheck_eval.engine.attention import ATTENTIONS; print(*ATTENTIONS)")}

status=0
for attention in $attentions; do
    left_s=$((limit_s - $(date +%s) + began))
    if [ "$left_s" -lt 20 ]; then
        echo "attention $attention: not measured, the time is over"
        status=1
        continue
    fi
    echo "attention $attention"
    # $size is a list of options.
    # shellcheck disable=SC2086
    timeout "$left_s" "$python" benchmarks/throughput.py $size --engines ours --attention "$attention" \
        --out "$out/$attention.json" || status=1
done
exit "$status"
