# cmake -D CLANG_FORMAT=<clang-format> -D ROOT=<folder> -P clang_format.cmake: fails where a file of C++ or CUDA does
# not look as .clang-format wants it.

cmake_minimum_required(VERSION 3.24)

set(patterns "")
foreach(folder IN ITEMS include tests examples)
  foreach(extension IN ITEMS hpp cpp cu cuh)
    list(APPEND patterns "${ROOT}/${folder}/*.${extension}")
  endforeach()
endforeach()
file(GLOB_RECURSE files ${patterns})
if(NOT files)
  message(FATAL_ERROR "no file of C++ in ${ROOT}")
endif()
execute_process(COMMAND "${CLANG_FORMAT}" --style=file --dry-run -Werror ${files} RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "run ${CLANG_FORMAT} -i on the files named above")
endif()
