#!/usr/bin/env bash
# How true a job's number is on GPUs, and what timing costs it: nccl_training on 1, 2, 4, ... GPUs, with and without a rank
# whose loader takes longer, beside what the delay and the steps without it let expect; then in turns with the timer and
# without. Needs a GPU and a build of steptimer_example_nccl_training.
#
#   tests/bench/nccl_accuracy.sh BUILD_DIR [FOLDER]     leaves nccl_accuracy.csv, nccl_timer_cost.csv and machine.txt in
#                                                       FOLDER, once all of it ran
#
# The loss is read in every step, so that nothing of a delay is hidden behind the step before: data wait is then
# delay / (delay + step), with the step of the run in which nobody is slowed. Making a batch takes time without a delay, too,
# and a sleep takes longer than it should: steps are so long that both are little beside one.
script_name=tests/bench/nccl_accuracy.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"
# shellcheck source=tests/bench/support/machine.sh
. "$root/tests/bench/support/machine.sh"
export LC_ALL=C

[ $# = 1 ] || [ $# = 2 ] || stop "usage: $script_name BUILD_DIR [FOLDER]"
build=$1
out=${2-}
training=$build/examples/nccl_training
[ -x "$training" ] || stop "$training is missing; build steptimer_example_nccl_training"

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# job RANKS ARGUMENTS...: leaves the line of JSON in `json`.
job() {
  local ranks=$1
  shift
  json=$("$training" --ranks "$ranks" --quiet --json "$@" < /dev/null) || stop "nccl_training could not run"
  json=${json##*$'\n'}
}
# number NAME: the first of that name.
number() { grep -o "\"$1\": [^,}]*" <<< "$json" | head -n 1 | sed 's/.*: //'; }
# of_rank NAME RANK: that of a rank.
of_rank() { grep -o "{\"rank\": $2,[^}]*}" <<< "$json" | grep -o "\"$1\": [^,}]*" | sed 's/.*: //'; }

job 0 --epochs 1
gpus=$(number ranks)
describe_machine "$build" "$script_name" > "$results/machine.txt"
cat "$results/machine.txt"

csv=$results/nccl_accuracy.csv
echo "ranks,delay_ms,step_ms,steps,measured_percent,expected_percent,guilty_rank,guilty_share,rank_0_data_wait_percent,\
rank_0_batch_ms,slow_rank_data_wait_percent,slow_rank_batch_ms" > "$csv"
printf '\n%5s | %8s | %8s | %5s | %8s | %8s %6s | %6s %6s | %s\n' ranks delay step steps measured expected away named share \
  "data_wait and batch_time of rank 0; of the slow rank"
for ((ranks = 1; ranks <= gpus; ranks *= 2)); do
  for delay in 0 2 5 20 50; do
    slowed=()
    [ "$delay" = 0 ] || slowed=(--slow-rank $((ranks - 1)) --loader-delay-ms "$delay")
    job "$ranks" --hidden 16384 --epochs $((5 * ranks)) --sync-every 1 "${slowed[@]}"
    [ "$delay" != 0 ] || step=$(number cycle_mean_s)
    awk -v ranks="$ranks" -v delay="$delay" -v step="$step" -v steps="$(number job_steps)" \
      -v measured="$(number job_data_wait_percent)" -v guilty="$(number guilty_rank)" -v share="$(number guilty_share)" \
      -v wait_0="$(of_rank data_wait_percent 0)" -v batch_0="$(of_rank batch_mean_s 0)" \
      -v wait_slow="$(of_rank data_wait_percent $((ranks - 1)))" \
      -v batch_slow="$(of_rank batch_mean_s $((ranks - 1)))" -v csv="$csv" '
      BEGIN {
        expected = 100 * delay / (delay + 1000 * step)
        if (guilty == "null") guilty = "none"
        printf "%5d | %5d ms | %5.2f ms | %5d | %6.2f %% | %6.2f %% %+6.2f | %6s %6.3f | %.2f %% %.2f ms; %.2f %% %.2f ms\n",
          ranks, delay, 1000 * step, steps, measured, expected, measured - expected, guilty, share, wait_0, 1000 * batch_0,
          wait_slow, 1000 * batch_slow
        printf "%d,%d,%.4f,%d,%.3f,%.3f,%s,%.4f,%.3f,%.4f,%.3f,%.4f\n", ranks, delay, 1000 * step, steps, measured,
          expected, guilty, share, wait_0, 1000 * batch_0, wait_slow, 1000 * batch_slow >> csv
      }'
  done
done

# The pairs begin in turns with the timer and without it.
csv=$results/nccl_timer_cost.csv
echo "ranks,pair,first,with_timer_s,without_timer_s,ratio" > "$csv"
printf '\n'
for ((ranks = 1; ranks <= gpus; ranks *= 2)); do
  for pair in 1 2 3 4 5 6 7; do
    order=(with without)
    [ $((pair % 2)) = 1 ] || order=(without with)
    for run in "${order[@]}"; do
      if [ "$run" = with ]; then
        job "$ranks" --hidden 4096 --epochs 20
        with=$(number loop_seconds)
      else
        job "$ranks" --hidden 4096 --epochs 20 --no-timer
        without=$(number loop_seconds)
      fi
    done
    awk -v ranks="$ranks" -v pair="$pair" -v first="${order[0]}" -v with="$with" -v without="$without" \
      'BEGIN { printf "%d,%d,%s,%.4f,%.4f,%.4f\n", ranks, pair, first, with, without, with / without }' >> "$csv"
  done
  awk -F , -v ranks="$ranks" '$1 == ranks { print $6 }' "$csv" | sort -n | awk -v ranks="$ranks" '
    { ratio[NR] = $1 }
    END { printf "%d ranks take %s times as long with the timer (median of %d pairs, %s to %s)\n", ranks,
            ratio[(NR + 1) / 2], NR, ratio[1], ratio[NR] }'
done

[ -z "$out" ] || { mkdir -p "$out" && cp "$results"/* "$out"; }
