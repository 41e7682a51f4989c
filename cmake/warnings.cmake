# How the project builds its own programs; nothing of it reaches a user of the library. Top-level builds only.
#
#   steptimer_warnings     strict warnings, as a strict user has them (CMAKE_COMPILE_WARNING_AS_ERROR makes them errors)
#   steptimer_test_build   how tests are compiled: quickly, and with what STEPTIMER_SANITIZE asks for, of which the
#                          first finding ends the program

set(STEPTIMER_SANITIZE "" CACHE STRING "Sanitizers for the tests: address,undefined or thread; empty for none")

add_library(steptimer_warnings INTERFACE)
target_compile_options(steptimer_warnings INTERFACE
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion>")

add_library(steptimer_test_build INTERFACE)
target_compile_options(steptimer_test_build INTERFACE  # -O3 takes twice as long and tests the same
  "$<$<AND:$<CONFIG:Release>,$<COMPILE_LANG_AND_ID:CXX,GNU,Clang,AppleClang>>:-O1>")
if(STEPTIMER_SANITIZE)
  target_compile_options(steptimer_test_build INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${STEPTIMER_SANITIZE};-fno-sanitize-recover=all;-fno-omit-frame-pointer;-g>")
  target_link_options(steptimer_test_build INTERFACE "-fsanitize=${STEPTIMER_SANITIZE}")
  message(STATUS "tests are built with -fsanitize=${STEPTIMER_SANITIZE}")
endif()
