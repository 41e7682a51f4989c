#!/usr/bin/env bash
# Everything that needs a GPU: the gpu tests, also under compute-sanitizer, the examples that train on one, a million
# steps with misuse, and the benchmarks in their quick form. For a machine with a GPU, nvcc, CMake and Catch2; it
# installs nothing and needs no network. Ends with a table.
#
#   tests/gpu/run.sh             all of it; the exit code says whether all went well
#   tests/gpu/run.sh -R fault    only the tests that ctest selects by these arguments
script_name=tests/gpu/run.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"

missing=()
find_missing compiler cmake catch2
[ "${#missing[@]}" = 0 ] || stop "needs $(packages_of "${missing[@]}")"
check_cmake

# PyTorch brings LibTorch, for two examples, and a newer fmt than the system's.
torch=$(torch_folder)
newer_fmt=
[ ! -f "$torch/include/fmt/format.h" ] || newer_fmt=$torch/include

build=$root/build/gpu
say "building in $build"
mkdir -p "$build"
configure "$build" -DSTEPTIMER_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native -DSTEPTIMER_TEST_FMT="$newer_fmt" \
  -DSTEPTIMER_TORCH="$torch"
grep -q '^CMAKE_CUDA_COMPILER:.*=/' "$build/CMakeCache.txt" || stop "needs nvcc, and CMake found none (CUDACXX names one)"
cmake --build "$build" --parallel "$(cores)" \
  --target steptimer_gpu_programs soak steptimer_example_cuda_training steptimer_example_bleed_through \
  steptimer_recipes steptimer_job_examples ${torch:+steptimer_example_libtorch_training steptimer_example_libtorch_simclr}

result=0
table=$build/table.txt
: > "$table"
row() { printf '%-68s %-8s %s\n' "$1" "$2" "$3" >> "$table"; }

say "running the tests"
log=$build/ctest.log
run_ctest() {
  ctest --test-dir "$build" --output-on-failure --no-tests=error "$@" 2>&1 < /dev/null | tee -a "$log" || result=1
}
: > "$log"
run_ctest -L gpu "$@"
[ $# != 0 ] || run_ctest -R '^(examples[.](cuda_training|bleed_through|libtorch_.*|nccl_training|mpi_training)|recipes[.]|mpi[.])' -E refuses
[ $# != 0 ] || run_ctest -R '^strict[.](nvcc[.])?fmt_newer[.]'
sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \(.*[^ .]\) \.\.*[ *]*\([A-Z][A-Za-z]*\).* \([0-9.]* sec\)$/\1|\2|\3/p' "$log" |
  while IFS='|' read -r name outcome seconds; do row "$name" "$outcome" "$seconds"; done

# program NAME PATTERN ARGUMENTS...: runs it; the last line that matches is its key figure.
under=()
program() {
  local name=$1 pattern=$2 outcome=Passed status=0 output=$build/$1.log
  shift 2
  printf '\n$ %s\n' "${under:+compute-sanitizer }$name${*:+ $*}"
  "${under[@]}" "$(find "$build" -type f -name "$name" -perm -u+x | head -n 1)" "$@" 2>&1 < /dev/null |
    tee "$output" || status=$?
  if [ "$status" != 0 ]; then
    outcome="Failed"
    result=1
  fi
  row "${under:+compute-sanitizer }$name${*:+ $*}" "$outcome" "$(grep -E "$pattern" "$output" | tail -n 1 | tr -s ' ')"
}

# sanitized NAME ARGUMENTS...: the program NAME under compute-sanitizer.
sanitized() {
  local sanitizer
  sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
  if [ ! -x "$sanitizer" ]; then
    row "compute-sanitizer $1" "Skipped" "compute-sanitizer was not found"
    return
  fi
  local name=$1 report=()
  shift
  # The tests provoke errors of the runtime on purpose; what is left to find there is memory.
  [ "$name" = cuda_training ] || report=(--report-api-errors no)
  under=("$sanitizer" --tool memcheck --leak-check full --error-exitcode 9 "${report[@]}")
  program "$name" 'ERROR SUMMARY' "$@"
  under=()
}

if [ $# = 0 ]; then
  program cuda_training '^data_wait' --epochs 5
  program cuda_training '^data_wait' --epochs 5 --loader-delay-ms 4
  program cuda_training '^data_wait' --epochs 5 --loader-delay-ms 4 --prefetch 8
  program bleed_through '%$'
  if [ -n "$torch" ]; then
    program libtorch_training '^data_wait' --quiet
    program libtorch_simclr '^data_wait' --quiet
  fi
  ! grep -q 'steptimer_example_nccl_training' "$build/CMakeCache.txt" "$build/build.ninja" 2> /dev/null ||
    program nccl_training '^job data_wait' --quiet --sync-every 1 --loader-delay-ms 5
  program soak 'steps started' --timeline cuda
  # Under it everything takes longer and a stream's queue is shorter.
  sanitized steptimer_gpu_tests_legacy '~[timing]~[deep-queue]'
  sanitized cuda_training --epochs 2 --quiet
  benchmarks=$build/benchmarks.log
  "$root/tests/bench/run.sh" --quick --build "$build" 2>&1 | tee "$benchmarks" || result=1
fi

printf '\n%-68s %-8s %s\n' name result "key figure"
cat "$table"
if [ $# = 0 ]; then sed -n '/^benchmark  *result/,$p' "$benchmarks"; fi
exit "$result"
