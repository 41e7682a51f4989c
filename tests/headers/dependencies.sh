#!/bin/sh
# dependencies.sh <compiler> <include folder> <headers that need CUDA> <those that need fmt> <those that need NVTX>
#   <those that need MPI> [compiler arguments]
# Fails if a header includes, by whatever way, a dependency that it is not named after. Lists are separated by ';'.
set -eu
compiler=$1 include=$2 need_cuda=$3 need_format=$4 need_nvtx=$5 need_mpi=$6
shift 6

result=0
for header in "$include"/steptimer/*.hpp; do
  name=${header##*/}
  may_include=none
  case ";$need_cuda;" in *";$name;"*) may_include=cuda ;; esac
  case ";$need_format;" in *";$name;"*) may_include=fmt ;; esac
  case ";$need_nvtx;" in *";$name;"*) may_include=nvtx ;; esac
  case ";$need_mpi;" in *";$name;"*) may_include=mpi ;; esac
  if ! files=$("$compiler" -std=c++17 -M -x c++ "-I$include" "$@" "$header" 2>&1); then
    if [ "$may_include" = none ]; then
      echo "$name: $files"
      result=1
    else
      echo "$name: not looked at, $may_include is not here"
    fi
    continue
  fi
  for file in $files; do
    case $file in
      *cuda_runtime*) found=cuda ;;
      */fmt/*) found=fmt ;;
      */nvtx3/*) found=nvtx ;;
      */mpi.h | */openmpi/*) found=mpi ;;
      */catch2/*) found=catch2 ;;
      *) continue ;;
    esac
    if [ "$found" != "$may_include" ]; then
      echo "$name includes $found: $file"
      result=1
      break
    fi
  done
done
exit $result
