# Writes the whole library as one header, to be copied into a project that wants no more than that.
#
#   cmake -D INCLUDE=<folder of steptimer/> -D OUTPUT=<file> -P single_header.cmake
#
# The core comes first; then what looks at its records; then each header that needs something else, where the compiler
# finds that.

cmake_minimum_required(VERSION 3.24)

# Appends a header to `text`, with the headers of ours that it includes in their places, each once.
function(append_header path)
  get_filename_component(path "${path}" ABSOLUTE)
  get_property(done GLOBAL PROPERTY single_header_done)
  if("${path}" IN_LIST done OR "${path}" MATCHES "/macros_(keep|restore)[.]hpp$")
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY single_header_done "${path}")
  file(READ "${path}" rest)
  get_filename_component(folder "${path}" DIRECTORY)
  string(REPLACE "#pragma once\n" "" rest "${rest}")
  while("${rest}" MATCHES "\n#include \"([^\"\n]+)\"")
    set(line "${CMAKE_MATCH_0}")
    get_filename_component(included "${CMAKE_MATCH_1}" ABSOLUTE BASE_DIR "${folder}")
    string(FIND "${rest}" "${line}" at)
    string(SUBSTRING "${rest}" 0 ${at} before)
    string(LENGTH "${line}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(APPEND text "${before}\n")
    append_header("${included}")
  endwhile()
  string(APPEND text "${rest}")
  set(text "${text}" PARENT_SCOPE)
endfunction()

# The same for a header that is only for those who have what it needs.
function(append_optional_header name needs)
  string(APPEND text "\n#if __has_include(<${needs}>)\n")
  append_header("${INCLUDE}/steptimer/${name}")
  string(APPEND text "#endif  // __has_include(<${needs}>)\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()

file(READ "${INCLUDE}/steptimer/version.hpp" version)
foreach(part IN ITEMS MAJOR MINOR PATCH)
  string(REGEX MATCH "STEPTIMER_VERSION_${part} ([0-9]+)" found "${version}")
  list(APPEND numbers "${CMAKE_MATCH_1}")
endforeach()
list(JOIN numbers "." version)
get_filename_component(license "${INCLUDE}/../LICENSE" ABSOLUTE)
file(READ "${license}" license)
string(REGEX REPLACE "\n$" "" license "${license}")
string(REPLACE "\n" "\n// " license "// ${license}")
string(REPLACE "// \n" "//\n" license "${license}")

set(text "// steptimer ${version} in one file, made from its headers: change those, not this.\n//\n${license}\n#pragma once\n\n")
file(READ "${INCLUDE}/steptimer/detail/macros_keep.hpp" macros)
string(APPEND text "${macros}\n")
append_header("${INCLUDE}/steptimer/steptimer.hpp")
append_header("${INCLUDE}/steptimer/step_distribution.hpp")
append_header("${INCLUDE}/steptimer/step_window.hpp")
append_header("${INCLUDE}/steptimer/progress_line.hpp")
append_optional_header(cuda_backend.hpp cuda_runtime_api.h)
append_optional_header(format.hpp fmt/format.h)
file(READ "${INCLUDE}/steptimer/detail/macros_restore.hpp" macros)
string(APPEND text "\n${macros}")
string(REGEX REPLACE "\n\n\n+" "\n\n" text "${text}")
file(WRITE "${OUTPUT}" "${text}")
