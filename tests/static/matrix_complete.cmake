# cmake -D CTEST=<ctest> -D BUILD=<folder> -D LEGS=<legs.txt> -P matrix_complete.cmake
#
# Fails where ctest does not know a leg of the list, or knows one of those kinds that the list does not have: a leg
# that is lost on the way would otherwise look like a leg that passes.

cmake_minimum_required(VERSION 3.24)

file(STRINGS "${LEGS}" listed REGEX "^[^#]")
execute_process(COMMAND "${CTEST}" --test-dir "${BUILD}" -N OUTPUT_VARIABLE tests ERROR_QUIET RESULT_VARIABLE failed)
string(REGEX MATCHALL "\n *Test +#[0-9]+: [^\n]+" tests "${tests}")
if(failed OR NOT tests)
  message(FATAL_ERROR "${CTEST} lists no test in ${BUILD}")
endif()
list(TRANSFORM tests REPLACE "\n *Test +#[0-9]+: " "")
list(FILTER tests INCLUDE REGEX "^(strict|exceptions|no_exceptions|headers|static|odr|single|lint)([.]|$)")

set(lost ${listed})
list(REMOVE_ITEM lost ${tests})
set(unlisted ${tests})
list(REMOVE_ITEM unlisted ${listed})
if(lost)
  list(JOIN lost "\n  " lost)
  message(SEND_ERROR "Registered by no CMakeLists.txt, so take them off ${LEGS} or bring them back:\n  ${lost}")
endif()
if(unlisted)
  list(JOIN unlisted "\n  " unlisted)
  message(SEND_ERROR "Not on the list, so add them to ${LEGS}:\n  ${unlisted}")
endif()
