"""read_back.py FORMAT FOLDER: reads csv, jsonl or trace with Python's own modules and compares with expected.txt."""

import csv
import json
import sys
from decimal import Decimal
from fractions import Fraction

TIMES = {1: "host_start_s", 2: "batch_time_s", 3: "wall_gap_s", 4: "data_time_s", 5: "host_batch_time_s",
         6: "host_wall_gap_s"}
COLUMNS = ["step", "host_start_s", "batch_time_s", "wall_gap_s", "data_time_s", "data_wait_percent",
           "host_batch_time_s", "host_wall_gap_s", "host_data_wait_percent", "items", "warmup"]


def check(holds, what):
    if not holds:
        sys.exit("not true: " + what)


def expected_records(folder):
    with open(folder + "/expected.txt") as lines:
        return [[None if word == "-" else int(word) for word in line.split()] for line in lines]


def check_percent(found, part, whole, where):
    """Six decimals of a double: off by at most the rounding of the last, and of the double."""
    if whole is None or whole <= 0:
        check(found is None, f"{where} is absent, not {found}")
        return
    exact = min(Fraction(100), Fraction(100 * max(part, 0), whole))
    check(abs(Fraction(found) - exact) < Fraction(6, 10**7), f"{where}: {found} is {float(exact)}")


def check_record(row, want):
    """row: text or None of each column."""
    where = f"step {want[0]}"
    check(int(row["step"]) == want[0] and int(row["items"]) == want[7], where)
    for at, name in TIMES.items():
        text = row[name]
        if want[at] is None:
            check(text is None, f"{where}: {name} is absent, not {text}")
            continue
        check(Decimal(text) * 10**9 == want[at], f"{where}: {name} {text} is {want[at]} ns")
        if want[at] < 2**51:  # 26 days: a double still tells nanoseconds apart
            check(round(float(text) * 1e9) == want[at], f"{where}: float({text}) is {want[at]} ns")
    data, batch = want[4], want[2]
    limit = 2**63 - 1  # where the library's own sum stays
    check_percent(row["data_wait_percent"], data, None if data is None else min(data + batch, limit), where)
    check_percent(row["host_data_wait_percent"], None if want[6] is None else want[6] - want[5], want[6], where)


def read_csv(folder):
    with open(folder + "/steps.csv", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        check(reader.fieldnames == COLUMNS, f"the header is {reader.fieldnames}")
        rows = list(reader)
    records = expected_records(folder)
    check(len(rows) == len(records), f"{len(rows)} rows")
    for row, want in zip(rows, records):
        check(None not in row and None not in row.values(), "each row has as many fields as the header")
        check(row["warmup"] == str(want[8]), "warmup")
        check_record({name: text or None for name, text in row.items()}, want)


def strict_json(text):
    def refuse(constant):
        raise ValueError(constant)
    return json.loads(text, parse_float=Decimal, parse_constant=refuse)


def read_jsonl(folder):
    with open(folder + "/steps.jsonl") as file:
        lines = file.read().splitlines()
    records = expected_records(folder)
    check(len(lines) == len(records), f"{len(lines)} lines")
    for line, want in zip(lines, records):
        row = strict_json(line)
        check(list(row) == COLUMNS, f"the names are {list(row)}")
        check(row["warmup"] is bool(want[8]), "warmup")
        check_record(row, want)


def in_ns(microseconds):
    ns = Decimal(microseconds) * 1000
    check(ns == int(ns), f"{microseconds} us are whole ns")
    return int(ns)


def read_trace(folder):
    with open(folder + "/trace.json") as file:
        text = file.read()
    events = strict_json(text)
    lines = text.splitlines(keepends=True)
    check(len(events) == len(lines) - 2, "an event a line, between the brackets")
    for whole in range(1, len(lines) - 1):  # as a program that died would have left it
        if whole < 40 or whole % 97 == 0:
            check(strict_json("".join(lines[:whole]) + "]") == events[:whole - 1], f"{whole} lines are a trace")

    names = {(e["name"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    check(names == {("process_name", 1): "steptimer", ("thread_name", 1): "host", ("thread_name", 2): "device"},
          f"names are {names}")

    def of(phase, track, name):
        return [e for e in events if e["ph"] == phase and e["tid"] == track and e["name"].startswith(name)]
    host, device, waits = of("X", 1, "step "), of("X", 2, "step "), of("X", 2, "data wait")
    starts, ends = of("s", 1, "queued"), of("f", 2, "queued")
    records = expected_records(folder)[:len(host)]
    check(len(host) == len(device) == len(starts) == len(ends) == 500, "500 steps")
    check(len(waits) == sum(r[4] is not None for r in records), "a wait for each gap")

    reached = 0
    waits = iter(waits)
    for want, on_host, on_device, start, end in zip(records, host, device, starts, ends):
        check(on_host["name"] == on_device["name"] == f"step {want[0]}", "the step's name")
        check(on_host["args"] == {"items": want[7], "warmup": bool(want[8])}, "the step's arguments")
        check((in_ns(on_host["ts"]), in_ns(on_host["dur"])) == (want[1], want[5]), f"step {want[0]} on the host")
        at = max(reached, want[1])
        check((in_ns(on_device["ts"]), in_ns(on_device["dur"])) == (at, want[2]), f"step {want[0]} on the device")
        reached = at + want[2]
        if want[4] is not None:
            wait = next(waits)
            check((in_ns(wait["ts"]), in_ns(wait["dur"])) == (reached, want[4]), f"the wait after step {want[0]}")
            reached += want[4]
        check(start["id"] == end["id"] == want[0] and end["bp"] == "e", "an arrow's ends belong together")
        check(start["ts"] == on_host["ts"] and end["ts"] == on_device["ts"], "an arrow goes from step to step")


{"csv": read_csv, "jsonl": read_jsonl, "trace": read_trace}[sys.argv[1]](sys.argv[2])
