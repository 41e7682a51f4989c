#!/usr/bin/env bash
# Plants the bugs of bugs.txt in the library, one at a time, and runs the test that has to notice each. A bug that no
# test notices is a test still owed.
#
#   tests/mutation/run.sh                all bugs, a line each; the last line counts them
#   tests/mutation/run.sh NAME-PART      those whose name or file holds this text
#   tests/mutation/run.sh --check        only whether every bug still applies and its test is there
#   BUGS=FILE tests/mutation/run.sh      another list
#
# Noticed means: the test says that it failed, it crashes, or it does not end within 20 s. A bug with which its test no
# longer compiles shows nothing and is an error of the list; under static/ compiling is the test.
#
# Needs bash, awk, g++, Catch2 and fmt. CUDA is the fake's. NVTX comes with the CUDA Toolkit: without it the bugs that
# its tests have to notice are left out, and said to be.
script_name=tests/mutation/run.sh
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/support/install_packages.sh
. "$root/tests/support/install_packages.sh"

tests=$root/tests
list=${BUGS:-$tests/mutation/bugs.txt}
work=$root/build/mutation
seconds=20
compiler=${CXX:-g++}

# ---- the list

names=() headers=() was=() now=() sources=() cases=()  # of bug 0, 1, ...

read_bugs() {
  local line key text i=-1
  while IFS= read -r line || [ -n "$line" ]; do
    key=${line%% *}
    text=${line#"$key"}
    text=${text#"${text%%[! ]*}"}
    case $key in
      '' | '#'*) continue ;;
      bug)
        i=$((i + 1))
        names[i]=$text headers[i]='' was[i]='' now[i]='' sources[i]='' cases[i]=''
        continue
        ;;
    esac
    [ "$i" -ge 0 ] || stop "$list begins with '$key'; a block begins with 'bug'"
    case $key in
      in) headers[i]=$text ;;
      was) was[i]+=${was[i]:+$'\n'}$text ;;
      now) now[i]+=${now[i]:+$'\n'}$text ;;
      test)
        sources[i]=${text%%: *}
        cases[i]=${text#"${sources[i]}"}
        cases[i]=${cases[i]#: }
        ;;
      *) stop "the bug '${names[i]}' has a line that begins with '$key'; known are bug, in, was, now, test" ;;
    esac
  done < "$list"
}

is_static() { [[ ${sources[$1]} == static/* ]]; }
needs_nvtx() { [[ $1 == unit/nvtx_* ]]; }

# plant BUG: its header with the bug in it. Fails, with the number of places where the bug fits, unless that is one.
plant() {
  WAS=${was[$1]} NOW=${now[$1]} awk '
    function bare(text) { sub(/^ +/, "", text); return text }
    function fits(at,   i) {
      for (i = 1; i <= count; ++i) if (bare(line[at + i - 1]) != was[i]) return 0
      return 1
    }
    BEGIN { count = split(ENVIRON["WAS"], was, "\n"); planted = split(ENVIRON["NOW"], now, "\n") }
    { line[NR] = $0 }
    END {
      for (at = 1; at + count - 1 <= NR; ++at) if (fits(at)) { ++places; place = at }
      if (places != 1) { print places + 0; exit 1 }
      match(line[place], /^ */)
      indentation = substr(line[place], 1, RLENGTH)
      for (at = 1; at < place; ++at) print line[at]
      for (at = 1; at <= planted; ++at) print indentation now[at]
      for (at = place + count; at <= NR; ++at) print line[at]
    }' "$root/include/steptimer/${headers[$1]}"
}

# What is wrong with a bug's entry; nothing if it can be planted and its test is there.
fault_of() {
  local i=$1 text
  if [ -z "${headers[i]}" ] || [ -z "${was[i]}" ] || [ -z "${sources[i]}" ]; then
    echo "its block lacks one of the lines in, was, test"
  elif [ "${was[i]}" = "${now[i]}" ]; then
    echo "it changes nothing"
  elif [ ! -f "$root/include/steptimer/${headers[i]}" ]; then
    echo "there is no include/steptimer/${headers[i]}"
  elif ! text=$(plant "$i"); then
    echo "what was occurs $text times in ${headers[i]}; it has to occur once"
  elif [ ! -f "$tests/${sources[i]}" ]; then
    echo "there is no tests/${sources[i]}"
  elif ! is_static "$i" && ! grep -qF "TEST_CASE(\"${cases[i]}\"" "$tests/${sources[i]}"; then
    echo "tests/${sources[i]} has no TEST_CASE(\"${cases[i]}\")"
  fi
}

check_bugs() {
  local i fault wrong=0 known=$'\n'
  for i in "${!names[@]}"; do
    fault=$(fault_of "$i")
    [[ $known != *$'\n'"${names[i]}"$'\n'* ]] || fault="another bug has the same name"
    known+=${names[i]}$'\n'
    [ -n "$fault" ] || continue
    say "the bug '${names[i]}' cannot be planted: $fault" >&2
    wrong=$((wrong + 1))
  done
  [ "$wrong" = 0 ] || stop "bring the list up to date: $wrong of ${#names[@]} bugs cannot be planted"
  [ "${#names[@]}" != 0 ] || stop "there is no bug in $list"
}

# ---- compiling and running one test

flags=(-std=c++17 -O0 -pthread "-I$tests" "-I$tests/support" "-I$tests/support/fake_cuda"
  "-I$tests/support/fake_cuda/include")
libraries=(-lfmt)

# The folder of NVTX's headers; nothing where there is none.
nvtx_folder() {
  local nvcc folder
  nvcc=$(command -v nvcc) || true
  for folder in "${CUDA_HOME-}" "${nvcc%/bin/nvcc}" /usr/local/cuda /usr; do
    [ ! -f "$folder/include/nvtx3/nvToolsExt.h" ] || { echo "$folder/include"; return; }
  done
}
nvtx=$(nvtx_folder)
notes=$work/support/nvtx_notes.so  # the tool that NVTX tells of its calls

compile_support() { "$compiler" "${flags[@]}" -c "$tests/support/$1.cpp" -o "$work/support/${1##*/}.o"; }

# What no bug changes: the parts of every test program, and Catch2's header, which is slow to read, already read.
build_support() {
  mkdir -p "$work/support"
  echo '#include "support/catch.hpp"' > "$work/support/first.hpp"
  ! has_header catch2/catch_test_macros.hpp || libraries=(-lCatch2 -lfmt)  # version 2 is a header alone
  at_once compile_support catch_runner main fake_cuda/fake_cudart device_work_fake
  [ -z "$nvtx" ] ||
    "$compiler" "${flags[@]}" -idirafter "$nvtx" -shared -fPIC "$tests/support/nvtx_notes.cpp" -o "$notes"
  "$compiler" "${flags[@]}" -x c++-header "$work/support/first.hpp" -o "$work/support/first.hpp.gch"
}

# compile SOURCE INCLUDE PROGRAM
compile() {
  if [[ $1 == static/* ]]; then
    "$compiler" "${flags[@]}" "-I$2" -fsyntax-only "$tests/$1"
  else
    local more=()
    ! needs_nvtx "$1" || more=(-idirafter "$nvtx" "-DSTEPTIMER_NVTX_NOTES=\"$notes\"" "$notes" -ldl)
    "$compiler" "${flags[@]}" "-I$2" -include "$work/support/first.hpp" "$tests/$1" "$work"/support/*.o \
      "${libraries[@]}" ${more[@]+"${more[@]}"} -o "$3"
  fi
}

# run_test PROGRAM CASE LOG SOURCE: prints `passed`, how it failed, or `nothing` where the program ran no such test.
run_test() {
  local result=0 spec=${2//,/\\,}  # a comma would begin another name
  ! grep -qF "TEMPLATE_TEST_CASE(\"$2\"" "$tests/$4" || spec+=" - *"  # one for each type
  timeout "$seconds" "$1" "$spec" --abort > "$3" 2>&1 < /dev/null || result=$?
  if [ "$result" = 124 ]; then
    echo "no end within $seconds s"
  elif [ "$result" -gt 128 ]; then
    echo "crash, signal $((result - 128))"
  elif [ "$result" = 0 ] && grep -q '^All tests passed ([0-9]* assertions\? in [1-9]' "$3"; then
    echo passed
  elif [ "$result" != 0 ] && grep -q '^test cases: .* failed' "$3"; then
    echo failed
  else
    echo nothing
  fi
}

# at_once FUNCTION ARGUMENT...: calls it with each argument, as many at a time as there are cores.
at_once() {
  local function=$1 argument running=0
  shift
  for argument in "$@"; do
    if [ "$running" = "$(cores)" ]; then
      wait -n || true
    else
      running=$((running + 1))
    fi
    "$function" "$argument" &
  done
  wait
}

# ---- the control: without a bug every test passes

control_program() { echo "$work/control/${1//\//_}"; }

compile_control() {
  local program
  program=$(control_program "$1")
  compile "$1" "$root/include" "$program" > "$program.log" 2>&1 ||
    say "the control fails: tests/$1 does not compile without any bug; see $program.log" | tee "$program.fault" >&2
}

run_control() {
  local i=$1 result program
  program=$(control_program "${sources[i]}")
  result=$(run_test "$program" "${cases[i]}" "$program.$i.log" "${sources[i]}")
  [ "$result" = passed ] ||
    say "the control fails: without any bug '${cases[i]}' of tests/${sources[i]} ends with: $result" |
    tee "$program.$i.fault" >&2
}

control() {
  local i key sources_left=() cases_left=() known=$'\n'
  for i in "$@"; do
    for key in "${sources[i]}" "${sources[i]}: ${cases[i]}"; do
      [[ $known != *$'\n'"$key"$'\n'* ]] || continue
      known+=$key$'\n'
      if [ "$key" = "${sources[i]}" ]; then sources_left+=("$key"); else is_static "$i" || cases_left+=("$i"); fi
    done
  done
  rm -rf "$work/control"
  mkdir -p "$work/control"
  at_once compile_control "${sources_left[@]}"
  ! compgen -G "$work/control/*.fault" > /dev/null || exit 1
  at_once run_control ${cases_left[@]+"${cases_left[@]}"}
  ! compgen -G "$work/control/*.fault" > /dev/null || exit 1
  say "without any bug ${#sources_left[@]} test sources compile and ${#cases_left[@]} tests pass"
}

# ---- the bugs

# verdict_on BUG FOLDER: `noticed by ...`, `SURVIVED ...` or `ERROR ...`
verdict_on() {
  local i=$1 folder=$2 result
  cp -R "$root/include" "$folder/include"
  plant "$i" > "$folder/include/steptimer/${headers[i]}"
  if ! compile "${sources[i]}" "$folder/include" "$folder/test" > "$folder/log" 2>&1; then
    if is_static "$i" && grep -q 'tests/static/[^:]*:[0-9:]* error: static assertion failed' "$folder/log"; then
      echo "noticed by ${sources[i]}, which does not compile"
    else
      echo "ERROR with it tests/${sources[i]} does not compile: $(grep -m 1 'error' "$folder/log")"
    fi
    return
  fi
  ! is_static "$i" || { echo "SURVIVED ${sources[i]}, which compiles"; return; }
  result=$(run_test "$folder/test" "${cases[i]}" "$folder/log" "${sources[i]}")
  rm -f "$folder/test"
  case $result in
    passed) echo "SURVIVED ${sources[i]}: ${cases[i]}" ;;
    failed) echo "noticed by ${sources[i]}: ${cases[i]}" ;;
    nothing) echo "ERROR no such test was run: ${sources[i]}: ${cases[i]}" ;;
    *) echo "noticed by ${sources[i]}: ${cases[i]} ($result)" ;;
  esac
}

try_bug() {
  local folder=$work/bugs/$1 verdict
  mkdir -p "$folder"
  verdict=$(verdict_on "$1" "$folder")
  echo "$verdict" > "$folder/verdict"
  printf '%-8s  %s  %s\n' "${verdict%% *}" "${names[$1]}" "${verdict#* }"
}

read_bugs
check_bugs
if [ "${1-}" = --check ]; then
  say "every bug applies and its test is there: ${#names[@]}"
  exit
fi

chosen=()
without_nvtx=0
for i in "${!names[@]}"; do
  [[ "${names[i]} ${headers[i]}" == *"${1-}"* ]] || continue
  if [ -z "$nvtx" ] && needs_nvtx "${sources[i]}"; then
    without_nvtx=$((without_nvtx + 1))
  else
    chosen+=("$i")
  fi
done
[ "$without_nvtx" = 0 ] || say "left out: $without_nvtx bugs, since no CUDA Toolkit with NVTX was found"
[ "${#chosen[@]}" != 0 ] || stop "no bug that can be planted here has '${1-}' in its name or file"

install_missing compiler catch2 fmt
has_fmt || stop "needs fmt (libfmt-dev): some of the bugs are in what is formatted with it"
rm -rf "$work/bugs"
build_support
control "${chosen[@]}"
at_once try_bug "${chosen[@]}"
noticed=$(cat "$work"/bugs/*/verdict | grep -c '^noticed ') || true
echo "${#chosen[@]} planted, $noticed noticed"
[ "$noticed" = "${#chosen[@]}" ]
