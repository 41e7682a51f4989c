# shellcheck shell=bash
# What a result was measured on; sourced by the scripts beside it.
#
#   describe_machine BUILD COMMAND   prints a name and a value a line; BUILD is a folder of this project's, and COMMAND what
#                                    was called

first_line_of() { "$@" 2> /dev/null < /dev/null | head -n 1 || true; }
# line NAME VALUE: one line about the machine, unless there is nothing to say.
line() { [ -z "$2" ] || printf '%-10s %s\n' "$1" "$2"; }
gpus() {
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/, / (driver /; s/$/)/' | sort | uniq -c |
    sed 's/^ *//'
}
cuda_version() {
  local nvcc
  nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$1/CMakeCache.txt")
  "$nvcc" --version | sed -n 's/.*, release \([0-9.]*\).*/\1/p'
}

describe_machine() {
  local compiler
  line cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  line cores "$(cores)"
  line load "$(cut -d ' ' -f 1-3 /proc/loadavg) (1, 5 and 15 minutes, before the first benchmark)"
  line os "$(. /etc/os-release && echo "$PRETTY_NAME")"
  line kernel "$(uname -sr)"
  for compiler in "${CXX:-c++}" g++ clang++; do line "${compiler##*/}" "$(first_line_of "$compiler" --version)"; done
  line cmake "$(first_line_of cmake --version)"
  line gpu "$(first_line_of gpus)"
  line cuda "$(first_line_of cuda_version "$1")"
  line torch "$(first_line_of python3 -c 'import torch; print(torch.__version__)')"
  line date "$(date -u '+%Y-%m-%d %H:%M UTC')"
  line version "$(git -C "${BASH_SOURCE[0]%/*}" describe --always --dirty 2> /dev/null)"
  line command "$2"
}
