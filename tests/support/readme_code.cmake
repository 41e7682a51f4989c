# cmake -D README=... -D CODE=... -P readme_code.cmake: fails unless the README shows that file, word for word.
file(READ "${README}" readme)
file(READ "${CODE}" code)
string(FIND "${readme}" "```cpp\n${code}```" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${README} does not show ${CODE} as it is")
endif()
