#!/usr/bin/env bash
# What examples/plot.sh and examples/tensorboard.py make of a real training's files.
#
#   pictures.sh plot|tensorboard CPU_TRAINING FOLDER
set -euo pipefail
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
what=$1 training=$2 folder=$3

skip() {
  echo "-- skipped: $1"
  exit 0
}
rm -rf "$folder"
mkdir -p "$folder"
case $what in
  plot)
    command -v gnuplot > /dev/null || skip "gnuplot was not found"
    "$training" --epochs 100 --hidden 2 --quiet --csv "$folder/steps.csv" > /dev/null
    "$examples/plot.sh" "$folder/steps.csv"
    [ "$(head -c 4 "$folder/steps.png" | tail -c 3)" = PNG ]
    if "$examples/plot.sh" "$examples/data/digits.csv" "$folder/none.png" 2> "$folder/refused"; then exit 1; fi
    grep -q "has no column step" "$folder/refused"
    ;;
  tensorboard)
    python3 -c 'import torch.utils.tensorboard' 2> /dev/null || python3 -c 'import tensorboardX' 2> /dev/null ||
      skip "python3 has neither tensorboard with PyTorch nor tensorboardX"
    "$training" --epochs 2 --hidden 16 --phases --quiet --jsonl "$folder/steps.jsonl" > /dev/null
    [ "$(python3 "$examples/tensorboard.py" "$folder/steps.jsonl" "$folder/runs")" = "90 steps in $folder/runs" ]
    grep -q profiling/data_wait "$folder"/runs/events.*
    grep -q profiling/phase/backward "$folder"/runs/events.*
    if python3 -c 'import tensorboard.backend.event_processing.event_accumulator' 2> /dev/null; then
      python3 "$examples/checks/read_events.py" "$folder/steps.jsonl" "$folder/runs"
    fi
    ;;
esac
