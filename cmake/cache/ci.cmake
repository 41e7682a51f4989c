# How the run scripts build: optimised, and a warning is an error.  cmake -C cmake/cache/ci.cmake -S . -B build/tests
set(CMAKE_BUILD_TYPE Release CACHE STRING "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "")
