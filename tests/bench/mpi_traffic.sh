#!/usr/bin/env bash
# What Open MPI sends for a report of MpiJob, by its own count of messages (its component pml_monitoring): the difference
# of a run with 100 reports and one with none, per report and rank.
#
#   tests/bench/mpi_traffic.sh [WINDOW]      steps in the window, 100 if none is named
#
# Needs Open MPI, and build/bench as tests/bench/run.sh or tests/run.sh made it.
script_name=tests/bench/mpi_traffic.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"
export LC_ALL=C

window=${1:-100}
[[ $# -le 1 && $window =~ ^[1-9][0-9]{0,6}$ ]] || stop "usage: $script_name [STEPS], a whole number from 1 on"
reports=100
program=
for build in bench tests; do
  [ ! -x "$root/build/$build/tests/bench/mpi_traffic" ] || program=$root/build/$build/tests/bench/mpi_traffic
done
[ -n "$program" ] || stop "mpi_traffic is not built; run tests/run.sh where MPI is"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# monitored RANKS REPORTS: the program, with its counts in $work/<reports>.<rank>.prof.
monitored() {
  rm -f "$work/$2".*.prof
  "$root/examples/checks/mpi.sh" mpirun "$1" --mca pml_monitoring_enable 1 --mca pml_monitoring_enable_output 3 \
    --mca pml_monitoring_filename "$work/$2" "$program" "$2" "$window"
}

# sums REPORTS: bytes and messages that all ranks have sent, then the most that one has.
sums() {
  awk '$1 == "E" || $1 == "I" { bytes += $4; messages += $6; of[FILENAME] += $4; if (of[FILENAME] > most) most = of[FILENAME] }
    END { printf "%d %d %d\n", bytes, messages, most }' "$work/$1".*.prof
}

printf '%6s %18s %18s %18s  %s\n' ranks 'bytes sent a rank' 'most by one rank' 'messages a rank' "(a report; window of $window steps)"
for ranks in 1 2 4 8 16; do
  monitored "$ranks" 0 > /dev/null
  times=$(monitored "$ranks" "$reports")
  read -r bytes_0 messages_0 most_0 <<< "$(sums 0)"
  read -r bytes messages most <<< "$(sums "$reports")"
  awk -v n="$ranks" -v r="$reports" -v b=$((bytes - bytes_0)) -v m=$((messages - messages_0)) -v x=$((most - most_0)) \
    -v times="$times" 'BEGIN { printf "%6d %18.0f %18.0f %18.2f  %s\n", n, b / n / r, x / r, m / n / r, times }'
done
