# What the folders of tests share.

# Every public header, sorted by what it needs. A header that is not named here needs the standard library alone.
file(GLOB steptimer_public_headers CONFIGURE_DEPENDS
  RELATIVE "${PROJECT_SOURCE_DIR}/include/steptimer" "${PROJECT_SOURCE_DIR}/include/steptimer/*.hpp")
set(steptimer_needs_cuda cuda_backend.hpp)
set(steptimer_needs_format format.hpp)
set(steptimer_needs_nvtx nvtx_ranges.hpp)
set(steptimer_needs_mpi mpi.hpp)

set(steptimer_core_headers ${steptimer_public_headers})
list(REMOVE_ITEM steptimer_core_headers ${steptimer_needs_cuda} ${steptimer_needs_format} ${steptimer_needs_nvtx}
  ${steptimer_needs_mpi})

# The compilers that the tests call themselves, beside the one that builds the test programs.
find_program(STEPTIMER_GXX NAMES g++ DOC "g++ for the compile tests")
find_program(STEPTIMER_CLANGXX NAMES clang++ DOC "clang++ for the compile tests")
set(steptimer_compilers g++ clang++)
set(steptimer_g++ "${STEPTIMER_GXX}")
set(steptimer_clang++ "${STEPTIMER_CLANGXX}")

# clang++ with LLVM's own standard library is one more compiler to the tests: libc++, called with ${stdlib_libc++}.
set(stdlib_libc++ -stdlib=libc++ -DSTEPTIMER_TEST_LIBCXX)
set(steptimer_libc++ "")
if(STEPTIMER_CLANGXX)
  file(CONFIGURE OUTPUT libcxx.cpp CONTENT "#include <version>\n#ifndef _LIBCPP_VERSION\n#error\n#endif\n")
  execute_process(COMMAND "${STEPTIMER_CLANGXX}" ${stdlib_libc++} -fsyntax-only "${CMAKE_CURRENT_BINARY_DIR}/libcxx.cpp"
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    set(steptimer_libc++ "${STEPTIMER_CLANGXX}")
  endif()
endif()
set(STEPTIMER_NVCC "")
if(STEPTIMER_CUDA STREQUAL "OFF")
  set(steptimer_no_nvcc "CUDA is turned off")
else()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(STEPTIMER_NVCC "${CMAKE_CUDA_COMPILER}")
  endif()
  set(steptimer_no_nvcc "no nvcc was found")
endif()

# steptimer_include_arguments(<variable> <folders>...): what tells a compiler of them; nothing of those that it knows.
function(steptimer_include_arguments out)
  set(arguments "")
  foreach(dir IN LISTS ARGN)
    if(IS_DIRECTORY "${dir}" AND NOT dir IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(APPEND arguments -isystem "${dir}")
    endif()
  endforeach()
  set(${out} "${arguments}" PARENT_SCOPE)
endfunction()

set(steptimer_cuda_includes "")
if(TARGET steptimer::cuda)
  steptimer_include_arguments(steptimer_cuda_includes ${CUDAToolkit_INCLUDE_DIRS})
endif()
set(steptimer_has_nvtx FALSE)  # it comes with the toolkit and lies among its headers
foreach(dir IN LISTS CUDAToolkit_INCLUDE_DIRS)
  if(TARGET steptimer::cuda AND EXISTS "${dir}/nvtx3/nvToolsExt.h")
    set(steptimer_has_nvtx TRUE)
  endif()
endforeach()
set(steptimer_format_includes "")
if(TARGET steptimer::format)
  get_target_property(dirs fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  steptimer_include_arguments(steptimer_format_includes ${dirs})
endif()

set(steptimer_mpi_includes "")
if(TARGET steptimer::mpi)
  # Open MPI 4's bindings for C++ are no part of MPI any more and do without neither exceptions nor warnings.
  set(steptimer_mpi_includes -DOMPI_SKIP_MPICXX)
  get_target_property(dirs MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
  steptimer_include_arguments(dirs ${dirs})
  list(APPEND steptimer_mpi_includes ${dirs})
endif()

# A test that did not run says so: it is listed by name as skipped, with its reason.
function(steptimer_skip_test name label reason)
  add_test(NAME "${name}" COMMAND "${CMAKE_COMMAND}" -E echo "SKIPPED: ${reason}")
  set_tests_properties("${name}" PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED: " LABELS "${label}")
endfunction()

# A test that is one call of a compiler: steptimer_compile_test(<name> <label> <compiler> <arguments>...), where
# compiler is g++, clang++, libc++ or nvcc. It is skipped where that compiler is missing.
function(steptimer_compile_test name label compiler)
  if(compiler STREQUAL "nvcc")
    set(command "${STEPTIMER_NVCC}")
    set(reason "${steptimer_no_nvcc}")
  else()
    set(command "${steptimer_${compiler}}")
    set(reason "no ${compiler} was found")
  endif()
  if(NOT command)
    steptimer_skip_test("${name}" "${label}" "${reason}")
    return()
  endif()
  add_test(NAME "${name}" COMMAND "${command}" ${ARGN})
  set_tests_properties("${name}" PROPERTIES LABELS "${label}" TIMEOUT 300)
endfunction()

# The same for a program: <name>.build compiles and links it, <name> runs it.
function(steptimer_program_test name label compiler)
  set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}.program")
  steptimer_compile_test("${name}.build" "${label}" "${compiler}" ${ARGN} -o "${program}")
  if(NOT steptimer_${compiler})
    steptimer_skip_test("${name}" "${label}" "no ${compiler} was found")
    return()
  endif()
  set_tests_properties("${name}.build" PROPERTIES FIXTURES_SETUP "${name}")
  add_test(NAME "${name}" COMMAND "${program}")
  set_tests_properties("${name}" PROPERTIES LABELS "${label}" TIMEOUT 60 FIXTURES_REQUIRED "${name}")
endfunction()
