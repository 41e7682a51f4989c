#!/usr/bin/env bash
# Builds the examples and trains with them, and says what the numbers show. On a fresh Debian 12 or Ubuntu 24.04 it
# first installs what is missing, which takes root or sudo. A GPU is used where there is one.
#
#   examples/run.sh            about a minute of training
#   examples/run.sh --short    about ten seconds of it
script_name=examples/run.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"

epochs=(--epochs 80)
case ${1-} in
  '') ;;
  --short) epochs=(--epochs 20) ;;
  *) stop "unknown option '$1'; there is --short" ;;
esac

build=$root/build/examples
install_missing compiler cmake fmt gnuplot
check_cmake

say "building in $build"
mkdir -p "$build"
torch=$(torch_folder)
configure "$build" -DSTEPTIMER_TESTS=OFF ${torch:+"-DSTEPTIMER_TORCH=$torch"}
cmake --build "$build" --parallel "$(cores)"

# train TITLE PROGRAM ARGUMENTS...: what is tried, how it was called, what it prints.
train() {
  local title=$1 program=$2
  shift 2
  printf '\n== %s\n$ %s\n' "$title" "$program${*:+ $*}"
  "$build/examples/$program" "$@" < /dev/null
}

explain() {
  printf -- '-> %s\n' "$1"
  shift
  [ $# = 0 ] || printf -- '   %s\n' "$@"
}

# lacks_gpu PROGRAM: whether it wants a GPU and has none; leaves what it said in `reason`.
lacks_gpu() {
  if reason=$("$build/examples/$1" --epochs 1 --quiet 2>&1 < /dev/null); then return 1; fi
  case $reason in
    *"there is no GPU to use"*) reason=${reason#*: } ;;
    *) stop "$1 failed: $reason" ;;
  esac
}

train "1. A network learns digits on the CPU; its batches come from memory" cpu_training "${epochs[@]}"
explain "data_wait is the share of the time in which no step ran because the next batch was not there: next to none."

train "2. The same from slow storage: each batch takes 4 ms longer to fetch" \
  cpu_training "${epochs[@]}" --loader-delay-ms 4
explain "A step takes about what it took before; what slows this run down is 'data', the wait between two." \
  "A faster processor would not help it; a faster loader would."

train "3. The same slow storage, with loader threads that fetch ahead" \
  cpu_training "${epochs[@]}" --loader-delay-ms 4 --prefetch 4 --phases --csv "$build/steps.csv" --trace "$build/trace.json"
if command -v gnuplot > /dev/null; then
  printf 'picture    %s\n' "$("$root/examples/plot.sh" "$build/steps.csv")"
else
  printf 'picture    none: apt-get install gnuplot-nox, then examples/plot.sh %s\n' "$build/steps.csv"
fi
explain "The storage is as slow as in 2., and data_wait is small again: batches are fetched while steps run." \
    "The files hold each step: the first is for spreadsheets and the picture, the second opens in ui.perfetto.dev."

train "4. The timer on a timeline of your own" custom_backend
explain "Any type with three functions can be measured on. This one runs behind its host as a GPU does, and the host clock" \
  "books the work still queued as waiting for data."

if [ ! -x "$build/examples/cuda_training" ]; then
  printf '\n== 5. and 6. train on a GPU and are left out: they were not built (cmake says why above)\n'
elif lacks_gpu cuda_training; then
  printf '\n== 5. and 6. train on a GPU and are left out: %s\n' "$reason"
else
  train "5. The same network on the GPU, from slow storage" cuda_training "${epochs[@]}" --loader-delay-ms 4
  explain "The host only queues the steps. data_wait is measured on the GPU's own timeline, without waiting for it;" \
    "'host clock' is what timing the same calls on the host would have claimed."
  train "6. Why a host clock is not enough" bleed_through
  explain "The true data wait of each loop is known, as it is built in: the timer reads it, the host clock does not."
fi

libtorch_epochs=()
[ "${1-}" != --short ] || libtorch_epochs=(--epochs 4)
if [ ! -x "$build/examples/libtorch_training" ]; then
  printf '\n== 7. trains with LibTorch and is left out: it was not built (cmake says why above)\n'
elif lacks_gpu libtorch_training; then
  printf '\n== 7. trains with LibTorch and is left out: %s\n' "$reason"
else
  train "7. LibTorch: its DataLoader, a convolutional network, and the timer in five lines" \
    libtorch_training "${libtorch_epochs[@]}" --loader-delay-ms 20 --prefetch 4
  explain "The same hooks in a loop that is not ours; its worker threads hide the slow storage."
fi

if [ ! -x "$build/examples/mpi_training" ] || ! has_mpi; then
  printf '\n== 8. trains on several ranks over MPI and is left out: it was not built (cmake says why above)\n'
else
  ranks=("$root/examples/checks/mpi.sh" mpirun 2 "$build/examples/mpi_training" --quiet --slow-rank 1 --loader-delay-ms 5)
  printf '\n== 8. Two ranks over MPI, one of them with slow storage\n$ mpirun -n 2 mpi_training %s\n' "${ranks[*]:4}"
  "${ranks[@]}" < /dev/null
  explain "The all-reduce hides the culprit: its own steps are short, the other rank's are long and wait for nothing." \
    "Put together step by step, they say what the job waits for and for whom."
fi

if [ ! -x "$build/examples/nccl_training" ]; then
  printf '\n== 9. trains on several GPUs with NCCL and is left out: it was not built (cmake says why above)\n'
elif lacks_gpu nccl_training; then
  printf '\n== 9. trains on several GPUs with NCCL and is left out: %s\n' "$reason"
else
  train "9. NCCL: a process a GPU" nccl_training "${epochs[@]}" --quiet
  explain "The same, measured on each GPU's own timeline and brought together by NCCL."
fi
