#!/bin/sh
# Builds and runs the user's project of this folder. By hand, in a folder of its own:
#
#   run.sh prepare               configures steptimer without tests and installs it, for the two below
#   run.sh build WAY HIDDEN      WAY: folder, fetch, build_tree, install_tree
#                                HIDDEN: none, cuda, format, both; own_fmt: the project brings a fmt of its own;
#                                mpi: none, and the project asks for MPI
#   run.sh refuse                a package that cannot be had is refused with its reason
#   run.sh clean                 nothing of this machine's folders is in what was installed
#   run.sh pkg_config            without CMake, by the pkg-config file
#   run.sh archives              from the archives that cpack makes, of what is installed and of the source
#   run.sh                       all of it
set -eu

here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
work=${CONSUMER_WORK:-$source/build/consumer}
cmake=${CONSUMER_CMAKE:-cmake}
found=${CONSUMER_FOUND-"cuda;format"}
package=$work/package

# configure <source> <build> [arguments]: with the generator and compiler of the outer build, or the default.
configure() {
  from=$1 to=$2
  shift 2
  rm -rf "$to"
  "$cmake" -S "$from" -B "$to" ${CONSUMER_GENERATOR:+-G "$CONSUMER_GENERATOR"} \
    ${CONSUMER_CXX:+"-DCMAKE_CXX_COMPILER=$CONSUMER_CXX"} "$@"
}

# The optional targets left when some are hidden.
without() {
  left=
  for name in cuda format; do
    case ";$found;" in *";$name;"*) ;; *) continue ;; esac
    case "$1" in "$name" | both) continue ;; esac
    left="${left:+$left;}$name"
  done
  echo "$left"
}

prepare() {
  configure "$source" "$package/build" -DSTEPTIMER_TESTS=OFF -DSTEPTIMER_EXAMPLES=OFF
  rm -rf "$package/prefix"
  "$cmake" --install "$package/build" --prefix "$package/prefix"
}

build() {
  way=$1 hidden=$2
  to=$work/$way.$hidden
  case $way in
    folder | fetch) set -- "-DCONSUMER_FROM=$way" "-DCONSUMER_SOURCE=$source" ;;
    build_tree) set -- -DCONSUMER_FROM=package "-Dsteptimer_DIR=$package/build" ;;
    install_tree) set -- -DCONSUMER_FROM=package "-DCMAKE_PREFIX_PATH=$package/prefix" ;;
    *) echo "run.sh: no way '$way'" >&2; exit 2 ;;
  esac
  case $hidden in cuda | both) set -- "$@" -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON ;; esac
  case $hidden in format | both | own_fmt) set -- "$@" -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON ;; esac
  case $hidden in own_fmt) set -- "$@" -DCONSUMER_OWN_FMT=ON ;; esac
  expects=$(without "$hidden")
  case $hidden in mpi) expects="${expects:+$expects;}mpi" && set -- "$@" -DSTEPTIMER_MPI=ON ;; esac
  configure "$here" "$to" "-DCONSUMER_EXPECTS=$expects" "$@"
  "$cmake" --build "$to"
  "$to/consumer"
}

# refused <pattern> <CMake code>: the code must fail to configure, with a message that the pattern matches.
refused() {
  to=$work/refused
  mkdir -p "$to.source"
  printf 'cmake_minimum_required(VERSION 3.24)\nproject(refused LANGUAGES CXX)\n%s\n' "$2" > "$to.source/CMakeLists.txt"
  if output=$(configure "$to.source" "$to" "-DCMAKE_PREFIX_PATH=$package/prefix" \
    -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON 2>&1); then
    echo "not refused: $2"
    exit 1
  fi
  if ! printf '%s' "$output" | tr -s ' \n' ' ' | grep -q "$1"; then
    printf 'refused, but without saying "%s":\n%s\n' "$1" "$output"
    exit 1
  fi
  echo "refused as it has to be: $2"
}

refuse() {
  refused 'steptimer::cuda left out: the CUDA toolkit was not found' 'find_package(steptimer REQUIRED COMPONENTS cuda)'
  refused 'steptimer::gui is no component of steptimer' 'find_package(steptimer REQUIRED COMPONENTS gui)'
  refused 'requested version "0.2"' 'find_package(steptimer 0.2 REQUIRED)'
  refused 'requested version "1.0"' 'find_package(steptimer 1.0 REQUIRED)'
  refused 'steptimer::cuda was asked for and the CUDA toolkit was not found' \
    "set(STEPTIMER_CUDA ON)
add_subdirectory(\"$source\" steptimer)"
  refused "steptimer::cuda is AUTO, ON or OFF, not 'maybe'" \
    "set(STEPTIMER_CUDA maybe)
add_subdirectory(\"$source\" steptimer)"
}

clean() {
  for folder in "$source" "$work"; do
    if grep -rlF "$folder" "$package/prefix"; then
      echo "the files above name $folder"
      exit 1
    fi
  done
  echo "no installed file names a folder of this machine"
}

# The smallest program, against whatever finds the headers: arguments are those of the compiler.
compile_without_cmake() {
  printf '#include <steptimer/steptimer.hpp>\nint main() { steptimer::CpuTimer timer; return timer.finish() ? 0 : 1; }\n' \
    > "$work/plain.cpp"
  "${CONSUMER_CXX:-c++}" -std=c++17 "$work/plain.cpp" "$@" -o "$work/plain"
  "$work/plain"
}

# The prefix is moved first: it has to work from any place.
pkg_config() {
  rm -rf "$work/moved"
  cp -r "$package/prefix" "$work/moved"
  PKG_CONFIG_PATH=$work/moved/share/pkgconfig
  export PKG_CONFIG_PATH
  pkg-config --exact-version "$(sed -n 's/^Version: //p' "$PKG_CONFIG_PATH/steptimer.pc")" steptimer
  # shellcheck disable=SC2046
  compile_without_cmake $(pkg-config --cflags --libs steptimer)
}

archives() {
  cpack=${CONSUMER_CPACK:-$(dirname "$cmake")/cpack}
  rm -rf "$work/archives"
  mkdir -p "$work/archives"
  (cd "$package/build" && "$cpack" -G TGZ -B "$work/archives" &&
    "$cpack" -G TGZ -B "$work/archives" --config CPackSourceConfig.cmake)
  cd "$work/archives"
  for archive in *.tar.gz; do tar -xzf "$archive"; done
  unpacked=$(echo steptimer-*-source)
  configure "$here" "$work/archives/consumer" -DCONSUMER_FROM=package "-DCONSUMER_EXPECTS=$found" \
    "-DCMAKE_PREFIX_PATH=$work/archives/${unpacked%-source}"
  "$cmake" --build "$work/archives/consumer"
  "$work/archives/consumer/consumer"
  compile_without_cmake "-I$work/archives/$unpacked/include"
}

case ${1:-all} in
  prepare) prepare ;;
  build) build "$2" "$3" ;;
  refuse | clean | pkg_config | archives) "$1" ;;
  all)
    prepare
    for way in folder build_tree install_tree; do
      for hidden in none cuda format both; do build "$way" "$hidden"; done
    done
    build fetch none
    build folder own_fmt
    refuse
    clean
    pkg_config
    archives
    ;;
  *) echo "run.sh: prepare, build, refuse, clean, pkg_config, archives, or nothing for all" >&2; exit 2 ;;
esac
