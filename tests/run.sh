#!/usr/bin/env bash
# Runs all tests. On a fresh Debian 12 or Ubuntu 24.04 it first installs what is missing, which takes root or sudo;
# where everything is there it takes neither. CUDA is used where it is and never installed.
#
#   tests/run.sh                 the last line is the number of tests, as ctest says it
#   tests/run.sh -L unit         arguments go to ctest
#
# The build is kept in build/tests, so that a second run is quick.
script_name=tests/run.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"

build=$root/build/tests
install_missing compiler cmake catch2 fmt clang libcxx libtorch clang_tidy clang_format cppcheck gnuplot prometheus mpi python
check_cmake

say "building in $build"
mkdir -p "$build"
configure "$build"
cmake --build "$build" --parallel "$(cores)"

say "running the tests"
log=$build/last_run.log
result=0
ctest --test-dir "$build" --parallel "$(cores)" --output-on-failure --no-tests=error "$@" 2>&1 < /dev/null |
  tee "$log" || result=$?

# ctest lists what was skipped, but not why: that is the first line that the test wrote.
awk 'NR == FNR { if (sub(/ \.*\*\*\*Skipped.*/, "") && sub(/^[^:]*: /, "")) skipped[$0] = 1; next }
  /^[0-9]+\/[0-9]+ Testing: / { sub(/^[^:]*: /, ""); name = $0; output = 0; next }
  /^-+$/ { ++output; next }
  output == 1 && name in skipped { sub(/^(-- )?(SKIPPED|skipped): /, ""); print "skipped: " name ": " $0; output = 2 }' \
  "$log" "$build/Testing/Temporary/LastTest.log"

# ctest writes times and lists after its count; the count is what a reader looks for, so it comes last as well.
count=$(grep -E '^[0-9]+% tests passed, [0-9]+ tests? failed out of [0-9]+' "$log" | tail -n 1) ||
  stop "ctest ran no test"
echo "$count"
exit "$result"
