#!/usr/bin/env bash
# Runs every benchmark that can run here, and ends with a table. It needs CMake and a compiler, and uses CUDA, CUPTI,
# fmt and PyTorch where they are; it installs nothing and needs no network. No figure decides about the exit code, only
# whether the programs ran.
#
#   tests/bench/run.sh [--quick] [--build FOLDER] [--save [NAME]]
#
# The results are left in build/bench/results (FOLDER/results), and copied into the folder OUT where that is set. --save also puts them
# into tests/bench/results, which is for a machine with a GPU, where all benchmarks ran: README.md shows those. Another
# machine has a NAME: its results go into tests/bench/results/NAME.
script_name=tests/bench/run.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"
# shellcheck source=tests/bench/support/csv_columns.sh
. "$root/tests/bench/support/csv_columns.sh"
# shellcheck source=tests/bench/support/machine.sh
. "$root/tests/bench/support/machine.sh"
export LC_ALL=C

command_line=$script_name${*:+ $*}
quick=()
save_to=
build=$root/build/bench
while [ $# != 0 ]; do
  case $1 in
    --quick) quick=(--quick) ;;
    --build)
      [ $# -gt 1 ] || stop "--build takes a folder"
      build=$2
      shift
      ;;
    --save)
      save_to=$root/tests/bench/results
      if [ $# -gt 1 ] && [[ $2 != --* ]]; then
        [[ $2 =~ ^[A-Za-z0-9][A-Za-z0-9_-]*$ ]] || stop "--save takes a name of letters, digits, - and _, not '$2'"
        save_to+=/$2
        shift
      fi
      ;;
    *) stop "unknown option '$1'; there are --quick, --build FOLDER and --save [NAME]" ;;
  esac
  shift
done

missing=()
find_missing compiler cmake
[ "${#missing[@]}" = 0 ] || stop "needs $(packages_of "${missing[@]}")"
check_cmake

benchmarks=(hook_cost scaling job_scale perturbation accuracy compile_cost)
results=$build/results

has_gpu() { nvidia-smi -L > /dev/null 2>&1 || [ -e /dev/nvidiactl ]; }

build_all() {
  local arguments=() torch targets=(steptimer_bench_programs)
  torch=$(torch_folder)
  [ -z "$torch" ] || arguments+=("-DSTEPTIMER_BENCH_TORCH=$torch")
  ! has_gpu || arguments+=(-DCMAKE_CUDA_ARCHITECTURES=native)
  say "building in $build"
  mkdir -p "$build"
  configure "$build" ${arguments[@]+"${arguments[@]}"}
  # The accuracy on a real model is that of an example.
  ! grep -q '^CMAKE_CUDA_COMPILER:.*=/' "$build/CMakeCache.txt" || targets+=(steptimer_example_cuda_training)
  cmake --build "$build" --parallel "$(cores)" --target "${targets[@]}"
}

# key_figure NAME: what a reader looks for first.
key_figure() {
  local program
  case $1 in
    hook_cost) program='value("what") == "steptimer" {
        text = text (text == "" ? "" : "; ") value("timeline") " " value("ns_per_step") " ns a step, ratio " \
          value("ratio") }
      END { print text }' ;;
    scaling) program='value("question") == "steps" { steps = value("ratio") }
      value("question") == "window" { window = value("ratio") }
      value("question") == "memory" { grown = value("rss_growth_kb") }
      END { print "most to fewest steps " steps ", largest to smallest window " window ", memory +" grown " KB" }' ;;
    job_scale) program='{ text = value("ranks") " ranks x " value("steps") " steps in " value("ms") " ms" }
      END { print text }' ;;
    compile_cost) program='{ added = value("added_s") + 0 }
      value("header") == "steptimer.hpp" && added > core { core = added }
      added > most { most = added; of = value("header") ", " value("compiler") }
      END { printf "steptimer.hpp adds at most %.3f s, any header %.3f s (%s)\n", core, most, of }' ;;
    perturbation) program='value("pattern") == "steptimer" && (text == "" || value("change_percent") + 0 > most) {
        most = value("change_percent") + 0; text = value("loop") }
      END { printf "steptimer: at most %+.1f %% (%s)\n", most, text }' ;;
    accuracy) program='value("truth_percent") != "" && value("steptimer_percent") != "" {
        off = value("steptimer_percent") - value("truth_percent")
        if (off < 0) off = -off
        if (off >= most) { most = off; of = value("workload") } }
      END { printf "off by at most %.1f points (%s)\n", most, of }' ;;
  esac
  from_csv "$program" "$results/$1.csv"
}

result=0
table=()
row() { table+=("$(printf '%-13s %-9s %7s  %s' "$@")"); }

has_rows() { [ -f "$1" ] && [ "$(wc -l < "$1")" -gt 1 ]; }

# benchmark NAME COMMAND...: runs it, and writes its row of the table.
benchmark() {
  local name=$1 log=$results/$1.log begin=$SECONDS status=0 outcome=ran figure
  shift
  printf '\n$ %s\n' "${*//"$root/"/}"
  "$@" < /dev/null 2>&1 | tee "$log" || status=$?
  if [ "$status" = 0 ] && ! has_rows "$results/$name.csv" && figure=$(grep -m 1 -o 'left out: .*' "$log"); then
    outcome="left out"
    figure=${figure#left out: }
  elif [ "$status" != 0 ] || ! has_rows "$results/$name.csv" || ! figure=$(key_figure "$name"); then
    outcome=FAILED
    figure="ended with code $status and these words: $(tail -n 1 "$log")"
    [ "$status" != 0 ] || figure="ended well and left no results that can be read"
    result=1
  fi
  has_rows "$results/$name.csv" || rm -f "$results/$name.csv"
  row "$name" "$outcome" $((SECONDS - begin)) "$figure"
  # After each, so that a run that is cut short leaves what it had.
  if [ -n "${OUT:-}" ]; then mkdir -p "$OUT" && cp -r "$results" "$OUT"; fi
}

# on_gpu NAME PROGRAM COMMAND...: the same, where that program was built and has a GPU to run on.
on_gpu() {
  local name=$1 program=$2
  shift 2
  if [ ! -x "$programs/$program" ]; then
    row "$name" "left out" "" "$program was not built (cmake says why above)"
  elif ! has_gpu; then
    row "$name" "left out" "" "there is no GPU to use"
  else
    benchmark "$name" "$@"
  fi
}

# Puts the results of this run, and no others, into a folder.
save() {
  local name not_run=()
  for name in "${benchmarks[@]}"; do [ -f "$results/$name.csv" ] || not_run+=("$name"); done
  if [ "$result" != 0 ]; then
    say "nothing is saved, since not all went well"
  elif [ "$save_to" = "$root/tests/bench/results" ] && [ "${#not_run[@]}" != 0 ]; then
    say "nothing is saved, since there is no result of ${not_run[*]}; on such a machine say --save NAME"
    result=1
  else
    mkdir -p "$save_to"
    for name in "${benchmarks[@]}"; do
      rm -f "$save_to/$name.csv"
      if [ -f "$results/$name.csv" ]; then cp "$results/$name.csv" "$save_to"; fi
    done
    cp "$results/machine.txt" "$save_to"
    say "saved in ${save_to#"$root/"}"
  fi
}

build_all
rm -rf "$results"
mkdir -p "$results"
describe_machine "$build" "$command_line" | tee "$results/machine.txt"

programs=$build/tests/bench
hook_cost_size=()
[ "${#quick[@]}" = 0 ] || hook_cost_size=(--steps 2000 --blocks 11)
benchmark hook_cost "$programs/hook_cost" "${hook_cost_size[@]}" --csv "$results/hook_cost.csv"
benchmark scaling "$programs/scaling" "${quick[@]}" --csv "$results/scaling.csv"
benchmark job_scale "$programs/job_scale" "${quick[@]}" --csv "$results/job_scale.csv"
on_gpu perturbation perturbation "$programs/perturbation" "${quick[@]}" --csv "$results/perturbation.csv"
on_gpu accuracy accuracy "$root/tests/bench/accuracy.sh" "$build" "$results" "${quick[@]}"
benchmark compile_cost "$root/tests/bench/compile_cost.sh" "${quick[@]}" --csv "$results/compile_cost.csv"

printf '\n'
[ -z "$save_to" ] || save
say "results in ${results#"$root/"}"
printf '\n%-13s %-9s %7s  %s\n' benchmark result seconds "key figure"
printf '%s\n' "${table[@]}"
exit "$result"
