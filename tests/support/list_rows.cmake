# cmake -D PROGRAM=... -D PREFIX=... -D PROPERTIES=... -D OUTPUT=... -P list_rows.cmake
# Asks a program for its rows (`PROGRAM list`) and writes a file for ctest, with one test a row.
execute_process(COMMAND "${PROGRAM}" list OUTPUT_VARIABLE rows COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" rows "${rows}")
set(tests "")
foreach(row IN LISTS rows)
  string(APPEND tests "add_test([==[${PREFIX}.${row}]==] [==[${PROGRAM}]==] [==[${row}]==])\n"
    "set_tests_properties([==[${PREFIX}.${row}]==] PROPERTIES ${PROPERTIES})\n")
endforeach()
file(WRITE "${OUTPUT}" "${tests}")
