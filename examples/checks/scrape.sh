#!/usr/bin/env bash
# scrape.sh PROGRAM: starts prometheus_exporter and asks it over HTTP, as Prometheus would, while it trains. Every metric has
# to be there, and those that count have to have moved from one scrape to the next.
set -euo pipefail
program=$1
output=$(mktemp)
"$program" --seconds 60 --port 0 > "$output" 2>&1 &
pid=$!
trap 'kill "$pid" 2> /dev/null || true; rm -f "$output"' EXIT

stop() {
  printf 'scrape.sh: %s\n' "$1" >&2
  exit 1
}

port=
for _ in {1..100}; do
  port=$(sed -n 's|^serving http://127.0.0.1:\([0-9]*\)/metrics$|\1|p' "$output")
  [ -z "$port" ] || break
  kill -0 "$pid" 2> /dev/null || stop "the program ended: $(cat "$output")"
  sleep 0.1
done
[ -n "$port" ] || stop "no address was printed within 10 seconds: $(cat "$output")"

# The answer to one GET, without its head.
scrape() {
  local connection
  exec {connection}<> "/dev/tcp/127.0.0.1/$port"
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&"$connection"
  tr -d '\r' <&"$connection" | sed '1,/^$/d'
  exec {connection}>&-
}

# value NAME TEXT: of a metric, empty where there is none.
value() { awk -v name="$1" '$1 == name { print $2 }' <<< "$2"; }

first=$(scrape)
sleep 1
second=$(scrape)

for name in steps_total items_total batch_seconds_total data_seconds_total wall_seconds_total last_step last_host_start; do
  before=$(value "steptimer_$name" "$first") after=$(value "steptimer_$name" "$second")
  [ -n "$before" ] && [ -n "$after" ] || stop "steptimer_$name is missing in: $second"
  awk -v a="$before" -v b="$after" 'BEGIN { exit !(b > a) }' || stop "steptimer_$name went from $before to $after"
done
for name in batch_time data_time wall_gap host_batch_time fetch_time exposed_fetch phase_forward phase_backward; do
  seconds=$(value "steptimer_last_$name" "$second")
  awk -v s="$seconds" 'BEGIN { exit !(s != "" && s > 0 && s < 10) }' || stop "steptimer_last_$name is '$seconds'"
done
share=$(value steptimer_last_data_wait "$second")
awk -v s="$share" 'BEGIN { exit !(s != "" && s > 0 && s < 1) }' || stop "steptimer_last_data_wait is '$share'"
echo "two scrapes, $(value steptimer_steps_total "$first") and $(value steptimer_steps_total "$second") steps, data_wait $share"
