#!/usr/bin/env bash
# Makes the tables of README.md from the results in tests/bench/results, each between two comments:
#
#   <!-- NAME: made by tests/bench/readme_tables.sh -->   ...   <!-- end of NAME -->
#
#   tests/bench/readme_tables.sh [--check]
#
# --check changes nothing; the exit code is 1 where the tables do not show the results. Without its results a table is
# left out. Needs awk alone, mawk or gawk.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/bench/support/csv_columns.sh
. "$root/tests/bench/support/csv_columns.sh"
readme=$root/README.md
results=$root/tests/bench/results

stop() {
  printf 'readme_tables.sh: %s\n' "$1" >&2
  exit "${2:-2}"
}

check=
case $#:${1-} in
  0:) ;;
  1:--check) check=yes ;;
  *) stop "unknown arguments '$*'; there is --check" ;;
esac

# Numbers for reading, in awk; what is not known is n/a.
rounding='
  function fixed(number, decimals) { return number == "" ? "n/a" : sprintf("%." decimals "f", number) }
  function grouped(number,   text) {
    text = sprintf("%.0f", number)
    while (match(text, /[0-9][0-9][0-9][0-9]($|,)/)) text = substr(text, 1, RSTART) "," substr(text, RSTART + 1)
    return text
  }
  function percent(number) { return fixed(number, number != "" && number < 1 && number > -1 ? 2 : 1) }
  function nanoseconds(number) {
    if (number == "") return "n/a"
    return number < 1000 ? fixed(number, 1) " ns" : number < 1000000 ? fixed(number / 1000, 2) " us" : \
      fixed(number / 1000000, 2) " ms"
  }
'

table_of_accuracy() {
  cat << 'END'
Share of the time spent waiting for data, in percent. Truth is what CUPTI recorded of the kernels and copies themselves;
"skip" and "queue" are host gap minus GPU time, with one step or all steps kept until their events are ready.

| workload | cycle | truth | steptimer | host clock | skip | queue |
|---|---|---|---|---|---|---|
END
  from_csv "$rounding"'{
    print "| " value("workload") " | " fixed(value("cycle_ms"), 2) " ms | " percent(value("truth_percent")) " | " \
      percent(value("steptimer_percent")) " | " percent(value("host_percent")) " | " percent(value("skip_percent")) \
      " | " percent(value("queue_percent")) " |" }' "$1"
}

table_of_perturbation() {
  printf '%s\n\n' "How much longer the same loop takes with each way of timing it, in turns with no timer:"
  from_csv "$rounding"'
    !(value("loop") in bare) { loops[++loop_count] = value("loop"); bare[value("loop")] = value("no_timer_us") }
    value("pattern") == "no timer" { next }
    !(value("pattern") in seen) { patterns[++pattern_count] = value("pattern"); seen[value("pattern")] }
    { change[value("loop"), value("pattern")] = value("change_percent") }
    END {
      line = "| loop | no timer |"; rule = "|---|---|"
      for (i = 1; i <= pattern_count; ++i) { line = line " " patterns[i] " |"; rule = rule "---|" }
      print line; print rule
      for (k = 1; k <= loop_count; ++k) {
        line = "| " loops[k] " | " grouped(bare[loops[k]]) " us |"
        for (i = 1; i <= pattern_count; ++i) {
          number = change[loops[k], patterns[i]]
          number = number == "" ? "n/a" : sprintf("%+.1f %%", number)
          sub(/^-0\.0/, "+0.0", number)
          line = line " " number " |"
        }
        print line
      }
    }' "$1"
}

table_of_hook_cost() {
  cat << 'END'
What a step costs on the host, in turns in one process. The baseline of the CPU is two readings of its clock, that of
CUDA the calls that no event timer can do without. p50, p99 and worst are of single hooks, timed one by one.

| timeline | what | a step | times the baseline | p50 | p99 | worst |
|---|---|---|---|---|---|---|
END
  from_csv "$rounding"'
    function cell(text) { return (text == "n/a" ? "" : " " text) " |" }
    { print "| " value("timeline") " | " value("what") " |" cell(nanoseconds(value("ns_per_step"))) \
        cell(fixed(value("ratio"), 2)) cell(nanoseconds(value("p50_ns"))) cell(nanoseconds(value("p99_ns"))) \
        cell(nanoseconds(value("worst_ns"))) }' "$1"
}

table_of_scaling() {
  cat << 'END'
What a step costs where there is more of something, beside what it costs where there is least:

| what grows | from | to | at first | at last | ratio |
|---|---|---|---|---|---|
END
  from_csv "$rounding"'
    BEGIN {
      title["steps"] = "steps of a timer"
      title["window"] = "window"
      title["window_call"] = "window; the cost is that of one `window()` call"
      title["in_flight"] = "steps in flight, on a `ManualBackend`"
      title["in_flight_gpu"] = "steps in flight, on a GPU"
      title["writers"] = "writers that format a line a record"
    }
    value("question") == "memory" { steps = value("steps"); grown = value("rss_growth_kb"); next }
    !(value("question") in first) {
      questions[++count] = value("question")
      first[value("question")] = value("value")
      cost_at_first[value("question")] = value("ns_per_step")
    }
    {
      last[value("question")] = value("value")
      cost_at_last[value("question")] = value("ns_per_step")
      ratio[value("question")] = value("ratio")
    }
    END {
      for (i = 1; i <= count; ++i) {
        q = questions[i]
        print "| " (q in title ? title[q] : q) " | " grouped(first[q]) " | " grouped(last[q]) " | " \
          nanoseconds(cost_at_first[q]) " | " nanoseconds(cost_at_last[q]) " | " \
          (ratio[q] < 100 ? fixed(ratio[q], 2) : grouped(ratio[q])) " |"
      }
      if (grown != "") print "\nOver " grouped(steps) " steps resident memory grew by " grouped(grown) " KB."
    }' "$1"
}

table_of_compile_cost() {
  cat << 'END'
What including a header adds to the compilation of a file that includes what the header needs anyway:

| header | compiler | call | empty file | with what it needs | with the header | added |
|---|---|---|---|---|---|---|
END
  from_csv "$rounding"'{
    mode = value("mode") == "O2" ? "`-O2 -c`" : value("mode") == "syntax" ? "`-fsyntax-only`" : value("mode")
    print "| `" value("header") "` | " value("compiler") " | " mode " | " fixed(value("empty_s"), 3) " s | " \
      fixed(value("needed_s"), 3) " s | " fixed(value("with_s"), 3) " s | " fixed(value("added_s"), 3) " s |" }' "$1"
}

# The machine that the results are of, in one sentence.
sentence_of_machine() {
  awk '{ name = $1; sub(/^[^ ]* +/, ""); at[name] = $0 }
    END {
      gpu = "gpu" in at ? at["gpu"] ", CUDA " at["cuda"] ", " : ""
      print "The tables below were measured by `" at["command"] "` on " gpu at["cores"] \
        " cores of " at["cpu"] ", " at["os"] ", on " at["date"] "."
    }' "$1" | fold -s -w 120 | sed 's/ $//'
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# write_part NAME FUNCTION FILE: what comes between the comments of NAME; nothing without the results.
write_part() {
  local name=$1 function=$2 file=$3
  : > "$folder/$name"
  [ -f "$file" ] || return 0
  { echo && "$function" "$file" && echo; } > "$folder/$name" || stop "$file is not the result of a benchmark"
}

names=(accuracy perturbation hook_cost scaling compile_cost)
write_part machine sentence_of_machine "$results/machine.txt"
for name in "${names[@]}"; do write_part "$name" "table_of_$name" "$results/$name.csv"; done

# Takes out what is between the comments, and puts in what was made.
awk -v folder="$folder" '
  /^<!-- [a-z_]+: made by tests\/bench\/readme_tables\.sh -->$/ {
    if (inside != "") exit
    print
    inside = substr($2, 1, length($2) - 1)
    while ((getline line < (folder "/" inside)) > 0) print line
    next
  }
  inside != "" && $0 == "<!-- end of " inside " -->" { print "found " inside > (folder "/found"); inside = "" }
  inside == "" { print }
  END { if (inside != "") print inside > (folder "/open") }' "$readme" > "$folder/README.md"
[ ! -f "$folder/open" ] || stop "README.md has no line '<!-- end of $(cat "$folder/open") -->'"
for name in machine "${names[@]}"; do
  grep -qsx "found $name" "$folder/found" ||
    stop "README.md has no place for a table: add the lines '<!-- $name: made by tests/bench/readme_tables.sh -->' and \
'<!-- end of $name -->'"
done

if cmp -s "$folder/README.md" "$readme"; then exit 0; fi
[ -z "$check" ] || stop "README.md does not show the results in tests/bench/results; run tests/bench/readme_tables.sh" 1
cat "$folder/README.md" > "$readme"
