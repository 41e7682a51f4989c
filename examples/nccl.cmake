# example_nccl: NCCL for the program that links it, and for nothing else; nccl_left_out says why it is not there. NCCL comes as a
# package of its own (libnccl-dev), with some CUDA toolkits, or beside PyTorch as a package of Python's.

set(STEPTIMER_NCCL "" CACHE PATH "Folder of NCCL (with include/ and lib/), for nccl_training; empty for where it is found")

set(nccl_left_out "")
if(NOT has_cuda_programs)
  set(nccl_left_out "there is nothing to compile CUDA with")
elseif(NOT TARGET steptimer::format)
  set(nccl_left_out "fmt was not found (no target steptimer::format)")
endif()
if(nccl_left_out)
  return()
endif()

set(places HINTS ${CUDAToolkit_INCLUDE_DIRS} "${CUDAToolkit_LIBRARY_DIR}" "${CUDAToolkit_BIN_DIR}/.." "${STEPTIMER_TORCH}/../nvidia/nccl"
    PATH_SUFFIXES include lib)
if(STEPTIMER_NCCL)
  set(places PATHS "${STEPTIMER_NCCL}" PATH_SUFFIXES include lib NO_DEFAULT_PATH)
endif()
find_path(nccl_include nccl.h NO_CACHE ${places})
find_library(nccl_library NAMES nccl libnccl.so.2 NO_CACHE ${places})
if(NOT nccl_include OR NOT nccl_library)
  if(STEPTIMER_NCCL)
    message(FATAL_ERROR "STEPTIMER_NCCL is ${STEPTIMER_NCCL}, where NCCL is not; name the folder that "
                        "python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' prints")
  endif()
  set(nccl_left_out "NCCL was not found (install libnccl-dev, or set STEPTIMER_NCCL)")
  return()
endif()

add_library(example_nccl INTERFACE IMPORTED)
target_include_directories(example_nccl SYSTEM INTERFACE "${nccl_include}")
target_link_libraries(example_nccl INTERFACE "${nccl_library}")
