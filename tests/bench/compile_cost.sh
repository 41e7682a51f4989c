#!/usr/bin/env bash
# What including steptimer adds to the compilation of a file that includes what the headers need anyway: the standard
# library, CUDA, fmt. Three files (empty, with the headers needed, with steptimer as well) are compiled in turns. A
# round goes over all headers and compilers, so that a busy moment of the machine is one for all; figures are medians
# over the rounds, and what is added the median of the rounds' own differences.
#
#   tests/bench/compile_cost.sh [--quick] [--rounds N] [--csv FILE]     15 rounds; --quick: 5
#
# It needs g++ or clang++. The figures are for reading, not for passing.
set -euo pipefail
export LC_ALL=C CCACHE_DISABLE=1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

stop() {
  printf 'compile_cost.sh: %s\n' "$1" >&2
  exit 2
}

rounds=15
csv=
while [ $# != 0 ]; do
  case $1 in
    --quick) rounds=5 ;;
    --rounds | --csv)
      [ $# -gt 1 ] || stop "$1 needs a value"
      if [ "$1" = --csv ]; then csv=$2; else rounds=$2; fi
      shift
      ;;
    *) stop "unknown option '$1'; there are --quick, --rounds N and --csv FILE" ;;
  esac
  shift
done
[[ $rounds =~ ^[1-9][0-9]{0,3}$ ]] || stop "--rounds needs a whole number from 1 to 9999, not '$rounds'"
[ -z "$csv" ] || : 2> /dev/null > "$csv" || stop "$csv cannot be written; name a file in a folder that exists"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# outside_includes HEADER: what it includes from elsewhere, by itself and through other headers of steptimer.
outside_includes() {
  local seen=" " queue=("$1") file name
  while [ "${#queue[@]}" != 0 ]; do
    file=${queue[0]}
    queue=("${queue[@]:1}")
    case $seen in *" $file "*) continue ;; esac
    seen+="$file "
    grep -h '^#include <' "$file" || true
    while read -r name; do
      queue+=("$(realpath -m "$(dirname "$file")/$name")")
    done < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$file")
  done | sort -u
}

# Where CUDA is, for a compiler that does not find it by itself.
cuda_arguments() {
  local nvcc
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  [ ! -x "$nvcc" ] || printf '%s\n' -isystem "$(dirname "$(dirname "$(readlink -f "$nvcc")")")/include"
}
mapfile -t arguments < <(cuda_arguments)

# compile COMPILER MODE FILE
compile() {
  case $2 in
    syntax) "$1" -std=c++17 -fsyntax-only "-I$root/include" "${arguments[@]}" "$3" ;;
    O2) "$1" -std=c++17 -O2 -c "-I$root/include" "${arguments[@]}" "$3" -o "$folder/out.o" ;;
  esac
}

# seconds COMPILER MODE FILE: how long that takes.
seconds() {
  local begin=$EPOCHREALTIME
  compile "$@" || stop "$1 does not compile what it should, see above"
  awk -v begin="$begin" -v end="$EPOCHREALTIME" 'BEGIN { printf "%.6f\n", end - begin }'
}

# median_of_column N FILE
median_of_column() {
  awk -v n="$1" '{ print $n }' "$2" | sort -n | awk '{ at[NR] = $1 } END { printf "%.4f", at[int((NR + 1) / 2)] }'
}

# measure HEADER COMPILER MODE: its share of a round.
measure() {
  local empty needed with
  empty=$(seconds "$2" "$3" "$folder/empty.cpp")
  needed=$(seconds "$2" "$3" "$folder/needed_$1.cpp")
  with=$(seconds "$2" "$3" "$folder/with_$1.cpp")
  echo "$empty $needed $with" | awk '{ print $1, $2, $3, $3 - $2 }' >> "$folder/times_$1_$2_$3"
}

# medians HEADER COMPILER MODE: its row of the results.
medians() {
  local row=$1,$2,$3 column
  for column in 1 2 3 4; do row+=,$(median_of_column "$column" "$folder/times_$1_$2_$3"); done
  echo "$row"
}

if ! command -v g++ clang++ > /dev/null; then
  echo "left out: neither g++ nor clang++ was found"
  exit 0
fi
compilers=()
for compiler in g++ clang++; do
  if command -v "$compiler" > /dev/null; then
    compilers+=("$compiler")
  else
    echo "left out: $compiler was not found"
  fi
done

: > "$folder/empty.cpp"
rows=()
for header in steptimer.hpp cuda_backend.hpp format.hpp; do
  outside_includes "$root/include/steptimer/$header" > "$folder/needed_$header.cpp"
  { cat "$folder/needed_$header.cpp" && echo "#include <steptimer/$header>"; } > "$folder/with_$header.cpp"
  for compiler in "${compilers[@]}"; do
    # This also reads the files into memory, so that the first round is one like the others.
    if compile "$compiler" syntax "$folder/needed_$header.cpp" 2> "$folder/reason"; then
      rows+=("$header $compiler syntax" "$header $compiler O2")
    else
      echo "left out: $header with $compiler: $(grep -m 1 'error' "$folder/reason" | sed 's/.*error: //')"
    fi
  done
done

echo "compiling, rounds: $rounds"
for ((round = 0; round < rounds; ++round)); do
  for row in "${rows[@]}"; do
    # shellcheck disable=SC2086
    measure $row
  done
done

results=$folder/results.csv
echo header,compiler,mode,empty_s,needed_s,with_s,added_s > "$results"
for row in "${rows[@]}"; do
  # shellcheck disable=SC2086
  medians $row >> "$results"
done
[ -z "$csv" ] || cp "$results" "$csv"

awk -F, '
  NR == 1 { printf "%-17s %-8s %-8s %7s %8s %8s %8s\n", "seconds", "", "", "empty", "needed", "with", "added"; next }
  { printf "%-17s %-8s %-8s %7.3f %8.3f %8.3f %8.3f\n", $1, $2, $3, $4, $5, $6, $7 }
  NR == 2 || $7 > most { most = $7 }
  END { printf "goal: adds less than 0.15 s: at most %.3f s, %s\n", most, most < 0.15 ? "met" : "missed" }' "$results"
