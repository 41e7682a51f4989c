#!/usr/bin/env bash
# How true the timer's number is: the loops of `accuracy`, then a real training at three speeds of its loader, beside
# what CUPTI saw the device do. Needs a GPU and a build of accuracy, cuda_training_truth and the examples.
#
#   tests/bench/accuracy.sh BUILD_DIR OUT_DIR [--quick]     writes OUT_DIR/accuracy.csv and OUT_DIR/accuracy.txt
script_name=tests/bench/accuracy.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"
export LC_ALL=C

{ [ $# = 2 ] || { [ $# = 3 ] && [ "$3" = --quick ]; }; } || stop "usage: $script_name BUILD_DIR OUT_DIR [--quick]"
build=$1
out=$2
quick=${3-}
accuracy=$build/tests/bench/accuracy
training=$build/examples/cuda_training
watcher=$build/tests/bench/libcuda_training_truth.so
for file in "$accuracy" "$training" "$watcher"; do
  [ -e "$file" ] || stop "$file is missing; build accuracy, cuda_training_truth and steptimer_example_cuda_training"
done
watcher=$(cd "$(dirname "$watcher")" && pwd -P)/libcuda_training_truth.so
mkdir -p "$out"
csv=$out/accuracy.csv
text=$out/accuracy.txt
truth=$out/training_truth.csv
rm -f "$csv" "$text" "$truth"

result=0
"$accuracy" --csv "$csv" ${quick:+"$quick"} 2>&1 < /dev/null | tee "$text" || result=$?
[ "$result" != 0 ] || [ -e "$csv" ] || exit 0  # no GPU, and it has said so
[ -e "$csv" ] || exit "$result"

# number NAME JSON: nothing for null.
number() {
  sed -n "s/.*\"$1\": \\([^,}]*\\).*/\\1/p" <<< "$2" | sed 's/^null$//'
}

# decimals NUMBER: to a thousandth.
decimals() { [ -z "$1" ] || printf '%.3f' "$1"; }

# train NAME EPOCHS ARGUMENTS...: a row, where CUPTI saw the steps that the timer measured.
train() {
  local name=$1 epochs=$2 json cycle percent gaps outside measured row
  shift 2
  rm -f "$truth"
  if ! json=$(CUDA_INJECTION64_PATH=$watcher STEPTIMER_TRUTH_CSV=$truth \
    "$training" --quiet --json --epochs "$epochs" "$@" < /dev/null | tail -n 1) || [ ! -s "$truth" ]; then
    say "$name: no truth was written: ${json:-cuda_training printed nothing}" | tee -a "$text"
    result=1
    return
  fi
  IFS=, read -r _ cycle percent gaps outside < <(tail -n 1 "$truth")
  measured=$(number measured_steps "$json")
  if [ "$gaps" != $((measured - epochs)) ]; then  # each epoch ends in a pause
    say "$name: cannot be judged: the timer measured $((measured - epochs)) gaps, CUPTI saw $gaps" | tee -a "$text"
    result=1
    return
  fi
  row=$name,$cycle,$percent,$(decimals "$(number data_wait_percent "$json")")
  row=$row,$(decimals "$(number host_data_wait_percent "$json")"),,,$(number steps "$json"),$gaps,$outside
  # Columns that only the loops have stay empty.
  awk -F , -v row="$row" 'NR == 1 { n = split(row, cells, ","); for (; n < NF; ++n) row = row ","; print row; exit }' \
    "$csv" > "$truth"
  cat "$truth" >> "$csv"
  awk -F , '{ printf "%-43s %9.3f %9.2f %9.2f %9.2f %9s %9s %9.2f %8s %6d of %d\n", $1, $2, $3, $4, $5, "", "", $10, "",
    $9, $8 }' "$truth" | tee -a "$text"
}

epochs=(100 5 40)
[ -z "$quick" ] || epochs=(20 2 10)
train "cuda_training" "${epochs[0]}"
train "cuda_training loader 4 ms" "${epochs[1]}" --loader-delay-ms 4
train "cuda_training loader 4 ms prefetch 8" "${epochs[2]}" --loader-delay-ms 4 --prefetch 8
rm -f "$truth"
exit "$result"
