# The tests that need Catch2: unit, conformance, fake_cuda and gpu.

find_package(Threads REQUIRED)

# Catch2's session is compiled once. A test program takes it with its main(), or with a main() of its own.
add_library(steptimer_catch STATIC support/catch_runner.cpp)
target_include_directories(steptimer_catch PUBLIC . support)
target_link_libraries(steptimer_catch PUBLIC Catch2::Catch2 Threads::Threads PRIVATE steptimer_test_build)

set(sanitizer_settings "TSAN_OPTIONS=halt_on_error=1" "UBSAN_OPTIONS=print_stacktrace=1")
set(case_timeout 120)
if(STEPTIMER_SANITIZE)
  set(case_timeout 900)
endif()

# steptimer_test_program(<name> <sources>...): a program of Catch2 tests, with those warnings and sanitizers.
function(steptimer_test_program name)
  add_executable("${name}" ${ARGN})
  target_link_libraries("${name}" PRIVATE steptimer::steptimer steptimer_catch steptimer_warnings steptimer_test_build)
endfunction()

# steptimer_discover_tests(<program> <label>): each TEST_CASE becomes a test <label>.<name>.
function(steptimer_discover_tests program label)
  catch_discover_tests("${program}" TEST_PREFIX "${label}." PROPERTIES LABELS "${label}" TIMEOUT ${case_timeout}
    ENVIRONMENT "${sanitizer_settings}")
endfunction()

# steptimer_discover_rows(<program> <prefix> <test properties>...): where a test costs its process, the program runs one
# row a call and lists them by `list`; each becomes a test <prefix>.<row>.
function(steptimer_discover_rows program prefix)
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${program}_rows.cmake")
  add_custom_command(TARGET "${program}" POST_BUILD BYPRODUCTS "${list}" VERBATIM
    COMMAND "${CMAKE_COMMAND}" -D "PROGRAM=$<TARGET_FILE:${program}>" -D "PREFIX=${prefix}" -D "PROPERTIES=${ARGN}"
      -D "OUTPUT=${list}" -P "${CMAKE_CURRENT_SOURCE_DIR}/support/list_rows.cmake")
  file(CONFIGURE OUTPUT "${program}_tests.cmake" @ONLY
    CONTENT "if(EXISTS [==[@list@]==])\n  include([==[@list@]==])\nendif()\n")  # not there before the first build
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${CMAKE_CURRENT_BINARY_DIR}/${program}_tests.cmake")
endfunction()

# The CUDA runtime without a GPU, linked in place of the real one. It is compiled against the headers of the toolkit
# where they are, so that the two cannot disagree, else against its own.
add_library(steptimer_cuda_headers INTERFACE)
if(TARGET steptimer::cuda)
  target_include_directories(steptimer_cuda_headers SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
else()
  target_include_directories(steptimer_cuda_headers INTERFACE support/fake_cuda/include)
endif()
add_library(steptimer_fake_cuda STATIC support/fake_cuda/fake_cudart.cpp)
target_include_directories(steptimer_fake_cuda PUBLIC . support support/fake_cuda)
target_compile_features(steptimer_fake_cuda PUBLIC cxx_std_17)
target_link_libraries(steptimer_fake_cuda PUBLIC steptimer_cuda_headers Threads::Threads
  PRIVATE steptimer_warnings steptimer_test_build)

# unit: one file a header, named after it.
file(GLOB unit_sources CONFIGURE_DEPENDS unit/*.cpp)
set(unit_cuda_sources ${unit_sources})
list(FILTER unit_cuda_sources INCLUDE REGEX "/(fake_)?cuda_[^/]*$")
list(FILTER unit_sources EXCLUDE REGEX "/(fake_)?cuda_[^/]*$")
set(unit_nvtx_sources ${unit_sources})
list(FILTER unit_nvtx_sources INCLUDE REGEX "/nvtx_[^/]*$")
list(FILTER unit_sources EXCLUDE REGEX "/nvtx_[^/]*$")
set(unit_format_sources ${unit_sources})
list(FILTER unit_format_sources INCLUDE REGEX "/format[^/]*$")
list(FILTER unit_sources EXCLUDE REGEX "/format[^/]*$")
if(unit_format_sources AND TARGET steptimer::format)
  list(APPEND unit_sources ${unit_format_sources})
elseif(unit_format_sources)
  steptimer_skip_test(unit.format unit "fmt was not found")
endif()
steptimer_test_program(steptimer_unit_tests support/main.cpp ${unit_sources})
if(TARGET steptimer::format)
  target_link_libraries(steptimer_unit_tests PRIVATE steptimer::format)
endif()
steptimer_discover_tests(steptimer_unit_tests unit)

# NVTX is told by an environment variable which library is to see its calls; the tests' own notes them down.
if(steptimer_has_nvtx)
  add_library(steptimer_nvtx_notes SHARED support/nvtx_notes.cpp)
  target_include_directories(steptimer_nvtx_notes PUBLIC support)
  target_link_libraries(steptimer_nvtx_notes PRIVATE steptimer::cuda steptimer_warnings)
  steptimer_test_program(steptimer_nvtx_tests support/main.cpp ${unit_nvtx_sources})
  target_link_libraries(steptimer_nvtx_tests PRIVATE steptimer_nvtx_notes steptimer::cuda ${CMAKE_DL_LIBS})
  target_compile_definitions(steptimer_nvtx_tests PRIVATE
    "STEPTIMER_NVTX_NOTES=\"$<TARGET_FILE:steptimer_nvtx_notes>\"")
  steptimer_discover_tests(steptimer_nvtx_tests unit)
else()
  steptimer_skip_test(unit.nvtx unit "no CUDA toolkit with NVTX was found")
endif()

# The code in README.md, block by block, for unit/cuda_readme_test.cpp to compile and run.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/README.md")
file(READ "${PROJECT_SOURCE_DIR}/README.md" readme)
set(readme_blocks 0)
string(FIND "${readme}" "\n```cpp\n" at)
while(NOT at EQUAL -1)
  math(EXPR at "${at} + 8")
  string(SUBSTRING "${readme}" ${at} -1 readme)
  string(FIND "${readme}" "\n```\n" end)
  string(SUBSTRING "${readme}" 0 ${end} code)
  file(CONFIGURE OUTPUT "readme/block_${readme_blocks}.inc" CONTENT "${code}\n" @ONLY)
  math(EXPR readme_blocks "${readme_blocks} + 1")
  string(FIND "${readme}" "\n```cpp\n" at)
endwhile()
set_source_files_properties(unit/cuda_readme_test.cpp PROPERTIES
  INCLUDE_DIRECTORIES "${CMAKE_CURRENT_BINARY_DIR}" COMPILE_DEFINITIONS "README_BLOCKS=${readme_blocks}")

# conformance: every Backend, that of CUDA over the fake runtime.
file(GLOB conformance_sources CONFIGURE_DEPENDS conformance/*.cpp)
steptimer_test_program(steptimer_conformance_tests support/main.cpp ${conformance_sources})
target_link_libraries(steptimer_conformance_tests PRIVATE steptimer_fake_cuda)
steptimer_discover_tests(steptimer_conformance_tests conformance)

# fake_cuda: the CUDA backend over the fake runtime, and what gpu asks of a real device asked of the fake as well.
file(GLOB gpu_sources CONFIGURE_DEPENDS gpu/cuda_*.cpp)
set(isolated_sources ${gpu_sources})
list(FILTER isolated_sources INCLUDE REGEX "_isolated[.]cpp$")
list(FILTER gpu_sources EXCLUDE REGEX "_isolated[.]cpp$")
add_library(steptimer_gpu_cases OBJECT ${gpu_sources})  # one object file for either runtime
target_link_libraries(steptimer_gpu_cases PRIVATE steptimer::steptimer steptimer_catch steptimer_cuda_headers
  steptimer_warnings steptimer_test_build)
steptimer_test_program(steptimer_fake_cuda_tests support/main.cpp support/device_work_fake.cpp ${unit_cuda_sources})
target_link_libraries(steptimer_fake_cuda_tests PRIVATE steptimer_gpu_cases steptimer_fake_cuda)
steptimer_discover_tests(steptimer_fake_cuda_tests fake_cuda)
foreach(source IN LISTS isolated_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable("${name}_fake" "${source}" support/device_work_fake.cpp)
  target_link_libraries("${name}_fake" PRIVATE steptimer::steptimer steptimer_fake_cuda steptimer_warnings
    steptimer_test_build)
  steptimer_discover_rows("${name}_fake" "fake_cuda.${name}" LABELS fake_cuda TIMEOUT 60 SKIP_RETURN_CODE 77)
endforeach()

# single: the same tests against the library as one file, which each header's name stands for here.
set(single_include "${CMAKE_CURRENT_BINARY_DIR}/single_include")
file(GLOB_RECURSE all_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/include"
  "${PROJECT_SOURCE_DIR}/include/steptimer/*.hpp")
foreach(header IN LISTS all_headers)
  file(CONFIGURE OUTPUT "${single_include}/${header}" CONTENT "#include \"${steptimer_single_header}\"\n")
endforeach()
# steptimer_single_test(<name> <sources>...): sources and what they link, as one test.
function(steptimer_single_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK")
  set(program "steptimer_single_${name}_tests")
  add_executable("${program}" support/main.cpp ${arg_SOURCES})
  add_dependencies("${program}" steptimer_single_header)
  target_compile_features("${program}" PRIVATE cxx_std_17)
  target_include_directories("${program}" PRIVATE "${single_include}")
  target_link_libraries("${program}" PRIVATE steptimer_catch steptimer_warnings steptimer_test_build ${arg_LINK})
  add_test(NAME "single.${name}" COMMAND "${program}")
  set_tests_properties("single.${name}" PROPERTIES LABELS single TIMEOUT ${case_timeout})
endfunction()
steptimer_single_test(unit SOURCES ${unit_sources} LINK $<TARGET_NAME_IF_EXISTS:fmt::fmt>)
steptimer_single_test(conformance SOURCES ${conformance_sources} LINK steptimer_fake_cuda)
steptimer_single_test(fake_cuda SOURCES support/device_work_fake.cpp ${unit_cuda_sources} ${gpu_sources}
  LINK steptimer_fake_cuda)

# Two meanings of stream 0 in one program.
set(default_streams_sources gpu/default_streams/main.cpp gpu/default_streams/legacy.cpp
  gpu/default_streams/per_thread.cpp)
add_executable(default_streams_fake ${default_streams_sources} support/device_work_fake.cpp)
target_link_libraries(default_streams_fake PRIVATE steptimer::steptimer steptimer_fake_cuda steptimer_warnings
  steptimer_test_build)
add_test(NAME fake_cuda.default_streams COMMAND default_streams_fake)
set_tests_properties(fake_cuda.default_streams PROPERTIES LABELS fake_cuda TIMEOUT 60)

# Where there is no toolkit, all of this is compiled against the fake's own headers; here that is at least looked at.
if(TARGET steptimer::cuda)
  get_target_property(catch_includes Catch2::Catch2 INTERFACE_INCLUDE_DIRECTORIES)
  steptimer_include_arguments(catch_includes ${catch_includes})
  foreach(source IN LISTS conformance_sources unit_cuda_sources gpu_sources isolated_sources ITEMS
      "${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda/fake_cudart.cpp"
      "${CMAKE_CURRENT_SOURCE_DIR}/support/device_work_fake.cpp")
    get_filename_component(name "${source}" NAME_WE)
    steptimer_compile_test("fake_cuda.own_headers.${name}" fake_cuda g++ -std=c++17 -fsyntax-only
      "-I${PROJECT_SOURCE_DIR}/include" "-I${CMAKE_CURRENT_SOURCE_DIR}" "-I${CMAKE_CURRENT_SOURCE_DIR}/support"
      "-I${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda" "-I${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda/include"
      ${catch_includes} "${source}")
  endforeach()
endif()

# gpu: on a real device, one test at a time; with the legacy default stream and with one for each thread.
if(NOT STEPTIMER_NVCC OR NOT TARGET steptimer::cuda)
  steptimer_skip_test(gpu gpu "${steptimer_no_nvcc}")
  return()
endif()
add_custom_target(steptimer_gpu_programs)
set(gpu_test LABELS gpu SKIP_RETURN_CODE 77 RESOURCE_LOCK steptimer_gpu)
foreach(default_stream IN ITEMS legacy per-thread)
  add_library("steptimer_device_work_${default_stream}" OBJECT support/device_work_gpu.cu)
  target_compile_options("steptimer_device_work_${default_stream}" PRIVATE "--default-stream=${default_stream}")
  target_link_libraries("steptimer_device_work_${default_stream}" PUBLIC steptimer::cuda)
  if(default_stream STREQUAL "per-thread")
    target_compile_definitions("steptimer_device_work_${default_stream}" PUBLIC CUDA_API_PER_THREAD_DEFAULT_STREAM=1)
  endif()

  set(program "steptimer_gpu_tests_${default_stream}")
  if(default_stream STREQUAL "legacy")
    steptimer_test_program("${program}" gpu/main.cpp)
    target_link_libraries("${program}" PRIVATE steptimer_gpu_cases)
  else()
    steptimer_test_program("${program}" gpu/main.cpp ${gpu_sources})
  endif()
  target_link_libraries("${program}" PRIVATE "steptimer_device_work_${default_stream}")
  add_dependencies(steptimer_gpu_programs "${program}")
  add_test(NAME "gpu.${default_stream}" COMMAND "${program}")
  set_tests_properties("gpu.${default_stream}" PROPERTIES ${gpu_test} TIMEOUT 300)
endforeach()
foreach(source IN LISTS isolated_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable("${name}" "${source}")
  target_link_libraries("${name}" PRIVATE steptimer::steptimer steptimer_device_work_legacy steptimer_warnings)
  add_dependencies(steptimer_gpu_programs "${name}")
  steptimer_discover_rows("${name}" "gpu.${name}" ${gpu_test} TIMEOUT 90)
endforeach()

add_executable(default_streams ${default_streams_sources})
target_link_libraries(default_streams PRIVATE steptimer::steptimer steptimer_device_work_legacy steptimer_warnings)
add_dependencies(steptimer_gpu_programs default_streams)
add_test(NAME gpu.default_streams COMMAND default_streams)
set_tests_properties(gpu.default_streams PROPERTIES ${gpu_test} TIMEOUT 60)

# The same tests against the static runtime, which nvcc links unless told otherwise.
if(TARGET CUDA::cudart_static)
  steptimer_test_program(steptimer_gpu_tests_static gpu/main.cpp $<TARGET_OBJECTS:steptimer_gpu_cases>
    $<TARGET_OBJECTS:steptimer_device_work_legacy>)
  target_link_libraries(steptimer_gpu_tests_static PRIVATE steptimer_cuda_headers CUDA::cudart_static)
  add_dependencies(steptimer_gpu_programs steptimer_gpu_tests_static)
  add_test(NAME gpu.static_runtime COMMAND steptimer_gpu_tests_static)
  set_tests_properties(gpu.static_runtime PROPERTIES ${gpu_test} TIMEOUT 300)
else()
  steptimer_skip_test(gpu.static_runtime gpu "the CUDA toolkit comes without the static runtime")
endif()

# The calls that a real runtime sees, as CUPTI reports them.
if(TARGET CUDA::cupti)
  add_executable(call_log_gpu gpu/call_log_gpu.cpp)
  target_link_libraries(call_log_gpu PRIVATE steptimer_device_work_legacy CUDA::cupti steptimer_warnings)
  add_dependencies(steptimer_gpu_programs call_log_gpu)
  add_test(NAME gpu.call_log COMMAND call_log_gpu)
  set_tests_properties(gpu.call_log PROPERTIES ${gpu_test} TIMEOUT 120)
else()
  steptimer_skip_test(gpu.call_log gpu "the CUDA toolkit comes without CUPTI")
endif()
