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
report=$build/last_run.xml
rm -f "$report"
result=0
ctest --test-dir "$build" --parallel "$(cores)" --output-on-failure --no-tests=error --output-junit "$report" \
  "$@" 2>&1 < /dev/null |
  tee "$log" || result=$?

# ctest lists what was skipped, but not why: that is the first line that the test wrote. Its own LastTest.log may be that
# of a ctest that a test has called.
awk '/^[ \t]*<testcase name="/ { name = $0; sub(/.*<testcase name="/, "", name); sub(/" classname=.*/, "", name); skipped = 0 }
  /<skipped / { skipped = 1 }
  skipped && sub(/.*<system-out>/, "") {
    sub(/<\/system-out>.*/, ""); sub(/^(-- )?(SKIPPED|skipped): /, "")
    line = "skipped: " name ": " $0
    gsub(/&quot;/, "\"", line); gsub(/&apos;/, "\047", line); gsub(/&lt;/, "<", line); gsub(/&gt;/, ">", line); gsub(/&amp;/, "\\&", line)
    print line
  }' "$report"

# ctest writes times and lists after its count; the count is what a reader looks for, so it comes last as well.
count=$(grep -E '^[0-9]+% tests passed(, [0-9]+ tests? failed)? out of [0-9]+' "$log" | tail -n 1) ||
  stop "ctest ran no test"
echo "$count"
exit "$result"
