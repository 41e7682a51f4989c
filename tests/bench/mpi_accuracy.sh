#!/usr/bin/env bash
# How true a job's number is: mpi_training by 1 to 16 ranks, with and without a rank whose loader takes longer, beside what
# the delay and the steps without it let expect. Needs MPI and a build of steptimer_example_mpi_training.
#
#   tests/bench/mpi_accuracy.sh BUILD_DIR [DELAY_MS]     prints a table; the delay is of the last rank, 10 ms where not given
#
# expected   delay / (delay + step), with the step of the run without a slow rank. Where there are more ranks than cores,
#            all of them compute at once in that run, and only the slow one in the other: that step is too long then.
# by own     the same with the slow rank's own steps, in which it waits for nobody.
# chance     how often each rank would be the last one if only chance decided.
script_name=tests/bench/mpi_accuracy.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"
export LC_ALL=C

[ $# = 1 ] || [ $# = 2 ] || stop "usage: $script_name BUILD_DIR [DELAY_MS]"
training=$1/examples/mpi_training
delay=${2-10}
[ -x "$training" ] || stop "$training is missing; build steptimer_example_mpi_training"
has_mpi || stop "needs $(packages_of mpi)"

# job RANKS ARGUMENTS...: about 300 steps; the line of JSON.
job() {
  local ranks=$1 batches=$(((1437 / $1 + 31) / 32))
  shift
  "$root/examples/checks/mpi.sh" mpirun "$ranks" "$training" --quiet --json --hidden 256 \
    --epochs $(((300 + batches - 1) / batches)) "$@" | tail -n 1
}

# number NAME JSON: the last of that name.
number() { sed -n "s/.*\"$1\": \\([^,}]*\\).*/\\1/p" <<< "$2"; }

printf 'the last rank loads %s ms longer; %s cores\n\n' "$delay" "$(cores)"
printf '%5s | %8s | %8s | %8s %6s | %8s %6s | %6s %6s | %s\n' ranks step measured expected away "by own" away \
  guilty share "without a slow rank: most blamed, chance, guilty"
for ranks in 1 2 4 8 16; do
  even=$(job "$ranks")
  slowed=$(job "$ranks" --slow-rank $((ranks - 1)) --loader-delay-ms "$delay")
  # The slow rank is the last of the rows, and so the last of that name.
  awk -v ranks="$ranks" -v delay="$delay" -v step="$(number cycle_mean_s "$even")" \
    -v own="$(number batch_mean_s "$slowed")" -v measured="$(number job_data_wait_percent "$slowed")" \
    -v guilty="$(number guilty_rank "$slowed")" -v share="$(number guilty_share "$slowed")" \
    -v most="$(number guilty_share "$even")" -v even_guilty="$(number guilty_rank "$even")" '
    BEGIN {
      expected = 100 * delay / (delay + 1000 * step)
      by_own = 100 * delay / (delay + 1000 * own)
      printf "%5d | %5.2f ms | %6.1f %% | %6.1f %% %+6.1f | %6.1f %% %+6.1f | %6s %6.3f | %.3f, %.3f, %s\n", ranks,
        1000 * step, measured, expected, measured - expected, by_own, measured - by_own, guilty, share, most,
        1 / ranks, even_guilty == "null" ? "none" : even_guilty
    }'
done
