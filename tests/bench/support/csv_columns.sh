# shellcheck shell=bash
# Reading the results of benchmarks; sourced by the scripts beside it.
#
#   from_csv PROGRAM FILE [NAME=VALUE...]   an awk program over a CSV file: value("name") is a column of the row

csv_columns='
  BEGIN { FS = "," }
  function value(name) {
    if (name in column) return $column[name]
    print FILENAME ": there is no column " name > "/dev/stderr"
    exit 1
  }
  NR == 1 { sub(/\r$/, ""); for (i = 1; i <= NF; ++i) column[$i] = i; next }
'

from_csv() {
  local program=$1 file=$2
  shift 2
  awk "$csv_columns$program" "$@" "$file"
}
