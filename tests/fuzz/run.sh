#!/usr/bin/env bash
# Lets libFuzzer look for a sequence of calls that the timer does not survive, with the address and undefined behaviour
# sanitizers on. Needs clang++ with its libFuzzer, and no GPU.
#
#   tests/fuzz/run.sh                  20,000 sequences a target
#   tests/fuzz/run.sh --runs N         so many
#   tests/fuzz/run.sh --seconds N      for so long a target
#   tests/fuzz/run.sh --keep ...       then replaces tests/fuzz/corpus by the smallest set that covers as much
#
# What is found stays in build/fuzz/corpus and is where the next run begins. A sequence that fails is printed, and kept
# in build/fuzz/failed; sequences_<target> of the ordinary build runs such a file too.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
build=${STEPTIMER_FUZZ_BUILD:-$root/build/fuzz}
targets=(manual scripted cuda)

limit=(-runs=20000)
keep=no
while [ $# -gt 0 ]; do
  case $1 in
    --runs | --seconds)
      [[ ${2:-} =~ ^[0-9]+$ ]] || { echo "tests/fuzz/run.sh: give $1 a number, as in: $1 1000" >&2; exit 2; }
      if [ "$1" = --runs ]; then limit=("-runs=$2"); else limit=("-max_total_time=$2"); fi
      shift 2
      ;;
    --keep) keep=yes; shift ;;
    *) echo "tests/fuzz/run.sh: it takes --runs N or --seconds N, and --keep, not '$1'" >&2; exit 2 ;;
  esac
done

mkdir -p "$build/failed"
clang=$(command -v clang++) || { echo "skipped: no clang++ was found"; exit 77; }
flags=(-std=c++17 -O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all
  -I"$root/include" -I"$root/tests" -I"$root/tests/support" -I"$root/tests/support/fake_cuda")
toolkit=${CUDA_PATH:-/usr/local/cuda}/include  # else the headers that the fake runtime has of its own
[ -f "$toolkit/cuda_runtime_api.h" ] || toolkit=$root/tests/support/fake_cuda/include
flags+=(-isystem "$toolkit")

echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' > "$build/probe.cpp"
"$clang" -fsanitize=fuzzer,address,undefined "$build/probe.cpp" -o "$build/probe" 2> "$build/probe.log" ||
  { echo "skipped: this clang++ comes without libFuzzer or a sanitizer"; exit 77; }

# The fake runtime is not what is looked at, so it has the sanitizers and no coverage.
"$clang" "${flags[@]}" -fsanitize=address,undefined -c "$root/tests/support/fake_cuda/fake_cudart.cpp" \
  -o "$build/fake_cudart.o" &
pids=($!)
for target in "${targets[@]}"; do
  "$clang" "${flags[@]}" -fsanitize=fuzzer-no-link,address,undefined -c "$root/tests/fuzz/fuzz_$target.cpp" \
    -o "$build/fuzz_$target.o" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
for target in "${targets[@]}"; do
  objects=("$build/fuzz_$target.o")
  if [ "$target" = cuda ]; then objects+=("$build/fake_cudart.o"); fi
  "$clang" -fsanitize=fuzzer,address,undefined "${objects[@]}" -o "$build/fuzz_$target" -lpthread
done

run_target() {
  local target=$1
  mkdir -p "$build/corpus/$target" "$root/tests/fuzz/corpus/$target"
  # No sequence needs more than a little memory at once, however huge an option.
  "$build/fuzz_$target" "${limit[@]}" -max_len=96 -malloc_limit_mb=4 -timeout=20 -print_final_stats=1 \
    -artifact_prefix="$build/failed/$target-" "$build/corpus/$target" "$root/tests/fuzz/corpus/$target" \
    > "$build/$target.log" 2>&1
}

declare -A pid_of
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
  run_target "$target" &
  pid_of[$target]=$!
done

result=0
rows=()
for target in "${targets[@]}"; do
  if wait "${pid_of[$target]}"; then outcome=passed; else outcome=FAILED result=1; fi
  log=$build/$target.log
  if [ "$outcome" = FAILED ]; then tail -n 200 "$log" >&2; fi
  sequences=$(awk '/number_of_executed_units/ { print $2 }' "$log")
  seconds=$(awk '/^Done/ { print $5 }' "$log")
  covered=$(awk '/ cov: / { for (i = 1; i < NF; ++i) if ($i == "cov:") last = $(i + 1) } END { print last }' "$log")
  of=$(awk '/Loaded .* inline 8-bit counters/ { sub(/.*\(/, ""); sub(/ inline.*/, ""); print }' "$log")
  rows+=("$(printf '%-9s %11s %8s  %5s of %-5s  %s' "$target" "${sequences:-?}" "${seconds:-?}" "${covered:-?}" \
    "${of:-?}" "$outcome")")
done

if [ "$keep" = yes ] && [ "$result" = 0 ]; then
  for target in "${targets[@]}"; do
    smallest=$build/smallest/$target
    mkdir -p "$smallest"
    find "$smallest" -type f -delete
    "$build/fuzz_$target" -set_cover_merge=1 -use_counters=0 -max_len=96 "$smallest" \
      "$build/corpus/$target" "$root/tests/fuzz/corpus/$target" > "$build/$target.merge.log" 2>&1
    find "$root/tests/fuzz/corpus/$target" -type f -delete
    number=0
    for file in "$smallest"/*; do
      number=$((number + 1))
      cp "$file" "$root/tests/fuzz/corpus/$target/$(printf 'sequence_%03d' "$number")"
    done
  done
fi

printf '%-9s %11s %8s  %-14s  %s\n' target sequences seconds 'edges covered' result
printf '%s\n' "${rows[@]}"
exit "$result"
