#!/usr/bin/env bash
# The tests under sanitizers, each of which ends a test at its first finding, and under valgrind. No GPU is needed: CUDA
# is the runtime of the tests. It installs nothing. Ends with a table.
#
#   tests/sanitizers/run.sh [address] [thread] [valgrind]     all three where none is named
#
# address    AddressSanitizer, its leak check, and UndefinedBehaviorSanitizer
# thread     ThreadSanitizer
# valgrind   memcheck with leak check, over the same programs built without sanitizers
script_name=tests/sanitizers/run.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"

[ $# != 0 ] || set -- address thread valgrind
for kind in "$@"; do
  case $kind in address | thread | valgrind) ;; *) stop "'$kind' is none of address, thread and valgrind" ;; esac
done
missing=()
find_missing compiler cmake catch2
[ "${#missing[@]}" = 0 ] || stop "needs $(packages_of "${missing[@]}")"
check_cmake

programs=(steptimer_unit_tests steptimer_conformance_tests steptimer_fake_cuda_tests soak)
table=()
result=0

# build KIND FLAGS: the programs, in a folder of their own.
build() {
  local kind=$1 flags=$2
  build=$root/build/sanitizers/$kind
  say "building for $kind in $build"
  mkdir -p "$build"
  configure "$build" "-DSTEPTIMER_SANITIZE=$flags" -DSTEPTIMER_EXAMPLES=OFF -DCMAKE_BUILD_TYPE=RelWithDebInfo
  cmake --build "$build" --parallel "$(cores)" --target "${programs[@]}" sequences_manual sequences_scripted sequences_cuda
}

# check NAME COMMAND...: one row of the table; the last line of its output is its figure.
check() {
  local name=$1 begin=$SECONDS status=0 log
  shift
  log=$build/$name.log
  printf '\n$ %s\n' "${*//"$root/"/}"
  "$@" > "$log" 2>&1 < /dev/null || status=$?
  tail -n 3 "$log"
  local outcome=clean
  if [ "$status" != 0 ]; then
    outcome="code $status"
    result=1
    grep -m 20 -E 'ERROR|WARNING|runtime error|FAILED|==[0-9]+==' "$log" || true
  fi
  table+=("$(printf '%-9s %-28s %-8s %5s s  %s' "$kind" "$name" "$outcome" $((SECONDS - begin)) \
    "$(grep -v '^$' "$log" | grep -v '^==' | tail -n 1)")")
}

export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
for kind in "$@"; do
  under=()
  case $kind in
    address) build address address,undefined ;;
    thread) build thread thread ;;
    valgrind)
      if ! command -v valgrind > /dev/null; then
        table+=("$(printf '%-9s %-28s %s' valgrind "" "skipped: valgrind was not found")")
        continue
      fi
      build valgrind ""
      under=(valgrind --quiet --leak-check=full --error-exitcode=9)
      ;;
  esac
  for program in "${programs[@]}"; do
    arguments=()
    [ "$program" != soak ] || arguments=(--steps 100000)
    # What goes through every failure of every call does so on one thread, and would take the slower ones an hour.
    if [ "$program" = steptimer_fake_cuda_tests ]; then
      case $kind in
        thread) arguments=('*thread*') ;;
        # Those that count allocations replace operator new, which valgrind replaces as well.
        valgrind) arguments=('~any call*~each call*~*however long*~*ten thousand*~*alloca*') ;;
      esac
    fi
    check "$program" "${under[@]}" "$(find "$build" -type f -name "$program" -perm -u+x | head -n 1)" "${arguments[@]}"
  done
  for target in manual scripted cuda; do
    STEPTIMER_SEQUENCES=$([ "$kind" = valgrind ] && echo 300 || echo 5000) \
      check "sequences_$target" "${under[@]}" "$(find "$build" -type f -name "sequences_$target" -perm -u+x | head -n 1)"
  done
done

printf '\n'
printf '%s\n' "${table[@]}"
exit "$result"
