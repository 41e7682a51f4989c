"""read_back.py FORMAT FOLDER: reads csv, jsonl or trace with Python's own modules and compares with expected.txt."""

import csv
import json
import sys
from decimal import Decimal
from fractions import Fraction

from expected import ExpectedTrace, check, expected_records

TIMES = ["host_start", "batch_time", "wall_gap", "data_time", "host_batch_time", "host_wall_gap", "fetch_time"]
COLUMNS = ["step", "host_start_s", "batch_time_s", "wall_gap_s", "data_time_s", "data_wait_percent",
           "host_batch_time_s", "host_wall_gap_s", "host_data_wait_percent", "items", "warmup", "fetch_time_s",
           "exposed_fetch_s", "device_drained", "steps_ahead"]


def check_percent(found, part, whole, where):
    """Six decimals of a double: off by at most the rounding of the last, and of the double."""
    if whole is None or whole <= 0:
        check(found is None, f"{where} is absent, not {found}")
        return
    exact = min(Fraction(100), Fraction(100 * max(part, 0), whole))
    check(abs(Fraction(found) - exact) < Fraction(6, 10**7), f"{where}: {found} is {float(exact)}")


def check_time(text, want, where):
    if want is None:
        check(text is None, f"{where} is absent, not {text}")
        return
    check(Decimal(text) * 10**9 == want, f"{where} {text} is {want} ns")
    if want < 2**51:  # 26 days: a double still tells nanoseconds apart
        check(round(float(text) * 1e9) == want, f"float({text}) of {where} is {want} ns")


def check_record(row, want):
    """row: text or None of each column."""
    where = f"step {want.step}"
    check(int(row["step"]) == want.step and int(row["items"]) == want.items, where)
    for name in TIMES:
        check_time(row[name + "_s"], getattr(want, name), f"{where}: {name}")
    check_time(row["exposed_fetch_s"], want.exposed_fetch, f"{where}: exposed_fetch")
    check(int(row["steps_ahead"]) == want.steps_ahead, f"{where}: steps_ahead")
    data, batch = want.data_time, want.batch_time
    limit = 2**63 - 1  # where the library's own sum stays
    check_percent(row["data_wait_percent"], data, None if data is None else min(data + batch, limit), where)
    check_percent(row["host_data_wait_percent"],
                  None if want.host_wall_gap is None else want.host_wall_gap - want.host_batch_time,
                  want.host_wall_gap, where)


def read_csv(folder):
    with open(folder + "/steps.csv", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        check(reader.fieldnames == COLUMNS, f"the header is {reader.fieldnames}")
        rows = list(reader)
    records = expected_records(folder)
    check(len(rows) == len(records), f"{len(rows)} rows")
    for row, want in zip(rows, records):
        check(None not in row and None not in row.values(), "each row has as many fields as the header")
        check(row["warmup"] == str(want.warmup), "warmup")
        check(row["device_drained"] == ("" if want.device_drained is None else str(want.device_drained)), "drained")
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
        check(list(row) == COLUMNS + ["phases"], f"the names are {list(row)}")
        check(row["warmup"] is bool(want.warmup), "warmup")
        check(row["device_drained"] is (None if want.device_drained is None else bool(want.device_drained)), "drained")
        check([(p["name"], Decimal(p["time_s"]) * 10**9) for p in row["phases"]] == want.phases, "phases")
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
    check(names == {("process_name", 1): "steptimer", ("thread_name", 1): "host", ("thread_name", 2): "device",
                    ("thread_name", 3): "phases"}, f"names are {names}")

    def of(phase, track):
        return [e for e in events if e["ph"] == phase and e["tid"] == track]
    want = ExpectedTrace(folder)
    for track, slices in enumerate([want.host, want.device, want.phases], start=1):
        found = [(e["name"], in_ns(e["ts"]), in_ns(e["dur"])) for e in of("X", track)]
        check(found == slices, f"the steps, waits and phases of track {track}")
    steps = [e for e in of("X", 2) if e["name"] != "data wait"]
    for record, on_host, on_device in zip(want.records, of("X", 1), steps):
        arguments = {"items": record.items, "warmup": bool(record.warmup)}
        check(on_host["args"] == on_device["args"] == arguments, "a step's arguments")

    starts, ends = of("s", 1), of("f", 2)
    check(len(starts) == len(ends) == len(steps) == 500, "an arrow for each step")
    for record, on_host, on_device, start, end in zip(want.records, of("X", 1), steps, starts, ends):
        check(start["id"] == end["id"] == record.step and end["bp"] == "e", "an arrow's ends belong together")
        inside = min(1, record.host_batch_time // 2, record.batch_time // 2)
        check(in_ns(start["ts"]) == in_ns(on_host["ts"]) + inside and
              in_ns(end["ts"]) == in_ns(on_device["ts"]) + inside, "an arrow goes from step to step")


{"csv": read_csv, "jsonl": read_jsonl, "trace": read_trace}[sys.argv[1]](sys.argv[2])
