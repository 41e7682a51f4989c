# What tools say of the code, each pinned to the version that it was made clean for, since another one has other rules.
#
#   lint.clang_tidy.headers     all headers and all calls, by .clang-tidy
#   lint.clang_tidy.<example>   an example that is plain C++
#   lint.cppcheck               both, by cppcheck_suppressions.txt
#   lint.clang_format           every file of C++ and CUDA, by .clang-format

# steptimer_lint_tool(<tool> <version>): leaves its path in lint_<tool>, or nothing, and why in no_<tool>.
function(steptimer_lint_tool tool wanted)
  string(TOUPPER "STEPTIMER_${tool}" variable)
  string(MAKE_C_IDENTIFIER "${variable}" variable)
  find_program("${variable}" NAMES "${tool}-${wanted}" "${tool}" DOC "${tool} ${wanted} for the tests lint.*")
  set(path "${${variable}}")
  set(reason "no ${tool} was found")
  if(path)
    execute_process(COMMAND "${path}" --version OUTPUT_VARIABLE version ERROR_QUIET)
    string(REGEX MATCH "[0-9]+[.][0-9.]+" version "${version}")
    if(NOT "${version}." MATCHES "^${wanted}[.]")
      set(path "")
      set(reason "it is pinned to ${tool} ${wanted}, and this is ${tool} ${version}")
    endif()
  endif()
  set("lint_${tool}" "${path}" PARENT_SCOPE)
  set("no_${tool}" "${reason}" PARENT_SCOPE)
endfunction()
steptimer_lint_tool(clang-tidy 14)
steptimer_lint_tool(clang-format 14)
steptimer_lint_tool(cppcheck 2.10)

# steptimer_lint_test(<name> <tool> <command>...)
function(steptimer_lint_test name tool)
  if(NOT lint_${tool})
    steptimer_skip_test("${name}" lint "${no_${tool}}")
    return()
  endif()
  add_test(NAME "${name}" COMMAND ${ARGN})
  set_tests_properties("${name}" PROPERTIES LABELS lint TIMEOUT 300)
endfunction()

set(lint_folders "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}/tests/support"
  "-I${CMAKE_CURRENT_BINARY_DIR}/../headers")  # all_headers.hpp is made there
set(lint_definitions -DSTEPTIMER_TEST_CPLUSPLUS=201703L "-DSTEPTIMER_EXAMPLES_DATA=\"digits.csv\"")
if(TARGET steptimer::cuda)
  list(APPEND lint_definitions -DSTEPTIMER_TEST_CUDA)
endif()
if(TARGET steptimer::format)
  list(APPEND lint_definitions -DSTEPTIMER_TEST_FORMAT)
endif()
if(TARGET steptimer::mpi)
  list(APPEND lint_definitions -DSTEPTIMER_TEST_MPI)
endif()
function(steptimer_clang_tidy_test name source)
  steptimer_lint_test("lint.clang_tidy.${name}" clang-tidy "${lint_clang-tidy}" --quiet "${source}" -- -std=c++17
    ${lint_definitions} ${lint_folders} ${steptimer_cuda_includes} ${steptimer_format_includes}
    ${steptimer_mpi_includes})
endfunction()

set(lint_sources "${PROJECT_SOURCE_DIR}/tests/headers/strict.cpp")
steptimer_clang_tidy_test(headers "${lint_sources}")
file(GLOB example_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
list(FILTER example_sources EXCLUDE REGEX "/(libtorch|prometheus)_[^/]*$")  # of what they include clang-tidy sees minutes
foreach(source IN LISTS example_sources)
  get_filename_component(name "${source}" NAME_WE)
  file(STRINGS "${source}" needs_format REGEX "^#include <(fmt/|steptimer/format)")
  if(needs_format AND NOT TARGET steptimer::format)
    steptimer_skip_test("lint.clang_tidy.${name}" lint "fmt was not found")
    continue()
  endif()
  file(STRINGS "${source}" needs_mpi REGEX "^#include <(mpi.h|steptimer/mpi)")
  if(needs_mpi AND NOT TARGET steptimer::mpi)
    steptimer_skip_test("lint.clang_tidy.${name}" lint "MPI was not found")
    continue()
  endif()
  steptimer_clang_tidy_test("${name}" "${source}")
endforeach()

steptimer_lint_test(lint.cppcheck cppcheck "${lint_cppcheck}" --quiet --std=c++17 --language=c++
  --enable=warning,style,performance,portability --error-exitcode=1
  "--suppressions-list=${CMAKE_CURRENT_SOURCE_DIR}/cppcheck_suppressions.txt"
  ${lint_definitions} ${lint_folders} ${lint_sources} ${example_sources})

steptimer_lint_test(lint.clang_format clang-format "${CMAKE_COMMAND}" -D "CLANG_FORMAT=${lint_clang-format}"
  -D "ROOT=${PROJECT_SOURCE_DIR}" -P "${CMAKE_CURRENT_SOURCE_DIR}/clang_format.cmake")
