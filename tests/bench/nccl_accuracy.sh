#!/usr/bin/env bash
# How true a job's number is on GPUs, and what timing costs it: nccl_training on all GPUs of this machine, with and without a
# rank whose loader takes longer, beside what the delay and the steps without it let expect; then in turns with the timer
# and without. Needs a build of steptimer_example_nccl_training.
#
#   tests/bench/nccl_accuracy.sh BUILD_DIR [--csv FILE]      prints tables
#
# The loss is read in every step, so that nothing of a delay is hidden behind the step before: data wait is then
# delay / (delay + step), with the step of the run in which nobody is slowed.
script_name=tests/bench/nccl_accuracy.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"
export LC_ALL=C

csv=/dev/null
if [ $# = 3 ] && [ "$2" = --csv ]; then csv=$3; elif [ $# != 1 ]; then stop "usage: $script_name BUILD_DIR [--csv FILE]"; fi
training=$1/examples/nccl_training
[ -x "$training" ] || stop "$training is missing; build steptimer_example_nccl_training"

# job ARGUMENTS...: the line of JSON.
job() { "$training" --quiet --json "$@" < /dev/null | tail -n 1; }
# number NAME JSON: the first of that name.
number() { grep -o "\"$1\": [^,}]*" <<< "$2" | head -n 1 | sed 's/.*: //'; }
# own NAME RANK JSON: that of a rank.
own() { grep -o "{\"rank\": $2,[^}]*}" <<< "$3" | grep -o "\"$1\": [^,}]*" | sed 's/.*: //'; }

echo "what,ranks,delay_ms,step_ms,measured_percent,expected_percent,guilty_rank,guilty_share,rank_0_data_wait_percent,rank_0_batch_ms,slow_rank_data_wait_percent,slow_rank_batch_ms" > "$csv"
printf '%5s | %8s | %8s | %8s | %8s %6s | %6s %6s | %s\n' ranks delay step measured expected away guilty share \
  "data_wait and batch_time of rank 0; of the slow rank"
ranks=$(number ranks "$(job --epochs 1)")
slow=$((ranks - 1))
even=$(job --epochs 20 --hidden 4096 --sync-every 1)
step=$(number cycle_mean_s "$even")
for delay in 0 1 2 5 20; do
  if [ "$delay" = 0 ]; then result=$even; else
    result=$(job --epochs 10 --hidden 4096 --sync-every 1 --slow-rank "$slow" --loader-delay-ms "$delay")
  fi
  awk -v ranks="$ranks" -v delay="$delay" -v step="$step" -v measured="$(number job_data_wait_percent "$result")" \
    -v guilty="$(number guilty_rank "$result")" -v share="$(number guilty_share "$result")" -v csv="$csv" \
    -v wait_0="$(own data_wait_percent 0 "$result")" -v batch_0="$(own batch_mean_s 0 "$result")" \
    -v wait_s="$(own data_wait_percent "$slow" "$result")" -v batch_s="$(own batch_mean_s "$slow" "$result")" '
    BEGIN {
      expected = 100 * delay / (delay + 1000 * step)
      if (guilty == "null") guilty = "none"
      printf "%5d | %5d ms | %5.2f ms | %6.2f %% | %6.2f %% %+6.2f | %6s %6.3f | %.2f %% %.2f ms; %.2f %% %.2f ms\n",
        ranks, delay, 1000 * step, measured, expected, measured - expected, guilty, share, wait_0, 1000 * batch_0, wait_s,
        1000 * batch_s
      printf "slowed,%d,%s,%.4f,%.3f,%.3f,%s,%.4f,%.3f,%.4f,%.3f,%.4f\n", ranks, delay, 1000 * step, measured, expected,
        guilty, share, wait_0, 1000 * batch_0, wait_s, 1000 * batch_s >> csv
    }'
done

# With the timer and without, in turns; the ratio of each pair, and the median of those.
ratios=()
for _ in 1 2 3 4 5 6 7; do
  with=$(number loop_seconds "$(job --epochs 20 --hidden 4096)")
  without=$(number loop_seconds "$(job --epochs 20 --hidden 4096 --no-timer)")
  ratios+=("$(awk -v a="$with" -v b="$without" 'BEGIN { printf "%.4f", a / b }')")
done
median=$(printf '%s\n' "${ratios[@]}" | sort -n | sed -n 4p)
printf '\nwith the timer the loop takes %s times as long (median of seven pairs: %s)\n' "$median" "${ratios[*]}"
echo "timer_ratio,$ranks,,,$median,1,,,,,," >> "$csv"
