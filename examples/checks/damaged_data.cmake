# Makes damaged copies of DATA in FOLDER and requires PROGRAM to refuse each in one sentence that says what is wrong where.
cmake_minimum_required(VERSION 3.24)

file(MAKE_DIRECTORY "${FOLDER}")
file(READ "${DATA}" good)
string(FIND "${good}" "\n" line_end)
math(EXPR next_line "${line_end} + 1")
string(SUBSTRING "${good}" 0 ${next_line} first)
string(SUBSTRING "${good}" ${next_line} -1 rest)

function(refuses name content sentence)
  set(file "${FOLDER}/${name}.csv")
  file(WRITE "${file}" "${content}")
  execute_process(
    COMMAND ${CMAKE_COMMAND} "-DPROGRAM=${PROGRAM}" "-DARGUMENTS=--data;${file}" "-DSENTENCE=${name}.csv.*${sentence}" -P
            "${CMAKE_CURRENT_LIST_DIR}/refuses.cmake"
    RESULT_VARIABLE code
    ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(SEND_ERROR "${name}: ${err}")
  endif()
endfunction()

string(REGEX REPLACE ",[0-9]+\n$" "\n" one_short "${first}")
string(REGEX REPLACE "\n$" ",7\n" one_more "${first}")
string(REGEX REPLACE ",[0-9]+\n$" ",10\n" wrong_label "${first}")
string(REGEX REPLACE "^0,0," "0,17," wrong_pixel "${first}")
string(REGEX REPLACE "^0,0," "0,x," no_number "${first}")
string(REGEX REPLACE "^0,0," "0,-1," negative "${first}")
string(REGEX REPLACE "^0,0," "0;0," wrong_separator "${first}")
string(REGEX REPLACE "^0,0," "0,99999999999999999999," huge "${first}")
string(REPEAT "0," 200 long_line)
string(SUBSTRING "${rest}" 0 5000 cut)

refuses(empty "" "ends after line 0")
refuses(few "${first}" "ends after line 1")
refuses(cut "${first}${cut}" "line [0-9]+ ")
refuses(one_short "${one_short}${rest}" "line 1 has 64 values instead of 65")
refuses(one_more "${one_more}${rest}" "line 1 does not end after its 65 values")
refuses(wrong_label "${first}${wrong_label}${rest}" "line 2 has the label .* above 9")
refuses(wrong_pixel "${first}${wrong_pixel}${rest}" "line 2 has value 2 above 16")
refuses(no_number "${no_number}${rest}" "line 1 has no whole number at value 2")
refuses(negative "${negative}${rest}" "line 1 has no whole number at value 2")
refuses(wrong_separator "${wrong_separator}${rest}" "line 1 has no comma after value 1")
refuses(huge "${huge}${rest}" "line 1 has value 2 above 16")
refuses(blank_line "${first}\n${rest}" "line 2 is empty")
refuses(long_line "${first}${long_line}" "line 2 is too long")
