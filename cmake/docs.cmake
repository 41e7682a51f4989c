# The target docs: the API reference in <build>/docs/html, made by Doxygen. A public name without a comment is an error.
# Top-level builds only.

find_package(Doxygen 1.9 QUIET)
if(NOT DOXYGEN_FOUND)
  message(STATUS "steptimer: no target docs, as Doxygen 1.9 or newer was not found")
  return()
endif()

set(DOXYGEN_PROJECT_BRIEF "${PROJECT_DESCRIPTION}")
set(DOXYGEN_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/docs")
set(DOXYGEN_STRIP_FROM_PATH "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_STRIP_FROM_INC_PATH "${PROJECT_SOURCE_DIR}/include")
set(DOXYGEN_EXTRACT_ALL NO)
set(DOXYGEN_JAVADOC_AUTOBRIEF YES)
set(DOXYGEN_WARN_AS_ERROR FAIL_ON_WARNINGS)
set(DOXYGEN_QUIET YES)
set(DOXYGEN_HAVE_DOT NO)
# What is no API.
set(DOXYGEN_EXCLUDE_PATTERNS "*/steptimer/detail/*")
set(DOXYGEN_EXCLUDE_SYMBOLS steptimer::detail steptimer::detail::* steptimer::cuda_detail steptimer::cuda_detail::*
  STEPTIMER_DETECT_CALL)
# A header's first comment is about the file, which Doxygen has to be told; and it has never heard of namespace fmt.
set(DOXYGEN_INPUT_FILTER "sed -e 's|^#pragma once$|/// @file|' -e 's|^struct fmt::|struct |'")
set(DOXYGEN_USE_MDFILE_AS_MAINPAGE "${PROJECT_SOURCE_DIR}/README.md")

doxygen_add_docs(docs
  "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/include/steptimer"
  COMMENT "The API reference in ${PROJECT_BINARY_DIR}/docs/html")
