# For working on steptimer: debug symbols, sanitizers, and a compile_commands.json for editors.
#   cmake -C cmake/cache/dev.cmake -S . -B build/dev
# Without sanitizers: add -DSTEPTIMER_SANITIZE= ; for data races: -DSTEPTIMER_SANITIZE=thread
set(CMAKE_BUILD_TYPE Debug CACHE STRING "")
set(CMAKE_COMPILE_WARNING_AS_ERROR ON CACHE BOOL "")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON CACHE BOOL "")
set(STEPTIMER_SANITIZE "address,undefined" CACHE STRING "")
