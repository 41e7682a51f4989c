# shellcheck shell=bash
# What the run scripts share; sourced by them. Debian 12, Ubuntu 24.04 and what is like them: packages come by apt.
#
#   say TEXT                  one line, with the script's name before it
#   stop TEXT                 the same, and the end
#   install_missing NAME...   installs what is not there yet; required are: compiler cmake catch2 chromium
#                             python_pip, welcome are: fmt clang libcxx libtorch clang_tidy clang_format cppcheck
#                             gnuplot prometheus mpi python
#   check_cmake               stops if CMake is too old
#   configure FOLDER ARGS...  configures the project into FOLDER, which is made anew if it belongs to another checkout
#   cores                     how many compilers to run at once
#   torch_folder              the folder of a PyTorch with CUDA, if python3 knows one

set -euo pipefail

say() { printf '%s: %s\n' "$script_name" "$1"; }

stop() {
  printf '%s: %s\n' "$script_name" "$1" >&2
  exit 1
}

cores() { nproc 2> /dev/null || echo 2; }

torch_folder() {
  local folder
  folder=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))' 2> /dev/null < /dev/null) || return 0
  [ ! -f "$folder/lib/libc10_cuda.so" ] || echo "$folder"
}

has_header() {
  echo "#include <$1>" | "${CXX:-c++}" -std=c++17 -E -x c++ - > /dev/null 2>&1
}

has_compiler() { command -v "${CXX:-c++}" > /dev/null && has_header cstdio; }
has_cmake() {
  command -v cmake > /dev/null && command -v ctest > /dev/null && { command -v ninja || command -v make; } > /dev/null
}
has_catch2() { has_header catch2/catch_test_macros.hpp || has_header catch2/catch.hpp; }
has_fmt() { has_header fmt/core.h; }
has_clang() { command -v clang++ > /dev/null; }
has_libcxx() { echo '#include <version>' | clang++ -stdlib=libc++ -E -x c++ - > /dev/null 2>&1; }
has_clang_tidy() { command -v clang-tidy > /dev/null; }
has_clang_format() { command -v clang-format > /dev/null; }
has_libtorch() { [ -e /usr/include/torch/csrc/api/include/torch/torch.h ] || [ -n "$(torch_folder)" ]; }
has_cppcheck() { command -v cppcheck > /dev/null; }
has_gnuplot() { command -v gnuplot > /dev/null; }
has_prometheus() { has_header prometheus/exposer.h; }
has_mpi() { command -v mpicxx > /dev/null && command -v mpirun > /dev/null; }
has_python() { command -v python3 > /dev/null; }
has_python_pip() { python3 -m pip --version > /dev/null 2>&1; }
has_chromium() { command -v chromium > /dev/null; }

# packages_of NAME...: the packages that bring them.
packages_of() {
  local name packages=()
  for name in "$@"; do
    case $name in
      compiler) packages+=(g++) ;;
      cmake) packages+=(cmake ninja-build) ;;
      fmt) packages+=(libfmt-dev) ;;
      libtorch) packages+=(libtorch-dev) ;;
      libcxx) packages+=(libc++-dev libc++abi-dev) ;;
      clang_tidy | clang_format) packages+=("${name/_/-}") ;;
      gnuplot) packages+=(gnuplot-nox) ;;
      prometheus) packages+=(prometheus-cpp-dev) ;;
      mpi) packages+=(libopenmpi-dev openmpi-bin) ;;
      python) packages+=(python3) ;;
      python_pip) packages+=(python3-pip) ;;
      *) packages+=("$name") ;;
    esac
  done
  echo "${packages[*]}"
}

# Leaves in `missing` those of the names that are not there.
find_missing() {
  missing=()
  local name
  for name in "$@"; do
    "has_$name" || missing+=("$name")
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  else
    sudo "$@"
  fi
}

# Why packages cannot be installed here; nothing if they can.
why_not_apt() {
  if ! command -v apt-get > /dev/null; then
    echo "there is no apt-get"
  elif [ "$(id -u)" != 0 ] && ! command -v sudo > /dev/null; then
    echo "this is not root, and there is no sudo"
  elif [ "$(id -u)" != 0 ] && ! sudo -n true 2> /dev/null && { [ ! -t 0 ] || ! sudo -v; }; then
    echo "this is not root, and sudo asks for a password"
  fi
}

# apt_get PACKAGE...: installs them, or prints the reason why not.
apt_get() {
  local log
  log=$(mktemp)
  if ! { as_root env DEBIAN_FRONTEND=noninteractive apt-get update &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } \
    > "$log" 2>&1 < /dev/null; then
    echo "apt-get failed: $({ grep -m 1 '^E: ' "$log" || tail -n 1 "$log"; } | tr -d '\n')"
  fi
  rm -f "$log"
}

install_missing() {
  local missing=() required=() name reason packages
  find_missing "$@"
  if [ "${#missing[@]}" = 0 ]; then
    say "everything needed is installed"
    return
  fi
  reason=$(why_not_apt)
  if [ -z "$reason" ]; then
    read -ra packages <<< "$(packages_of "${missing[@]}")"
    say "installing ${packages[*]}"
    reason=$(apt_get "${packages[@]}")
    find_missing "$@"
  fi

  # Without the welcome ones some tests are skipped; without the required ones there is nothing to run.
  for name in ${missing[@]+"${missing[@]}"}; do
    case $name in compiler | cmake | catch2 | chromium | python_pip) required+=("$name") ;; esac
  done
  if [ "${#required[@]}" != 0 ]; then
    stop "needs $(packages_of "${required[@]}") and cannot install it: ${reason:-apt-get did, and it is still not found}"
  fi
  if [ "${#missing[@]}" != 0 ]; then
    say "goes on without $(packages_of "${missing[@]}"), and skips what needs it: ${reason:-it is still not found}"
  fi
}

check_cmake() {
  local version
  version=$(cmake --version | sed -n '1s/.* \([0-9][0-9.]*\).*/\1/p')
  if [ "$(printf '%s\n' 3.24 "$version" | sort -V | head -n 1)" != 3.24 ]; then
    stop "CMake $version is too old: 3.24 or newer is needed"
  fi
}

configure() {
  local folder=$1
  shift
  if [ -f "$folder/CMakeCache.txt" ] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$folder/CMakeCache.txt"; then
    say "$folder was made from another place: starting over"
    rm -rf "$folder"
  fi
  # Of no effect on a folder that is configured already.
  if command -v ninja > /dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR-Ninja}; fi
  cmake -C "$root/cmake/cache/ci.cmake" -S "$root" -B "$folder" "$@"
}
