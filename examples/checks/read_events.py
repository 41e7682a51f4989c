"""read_events.py FILE.jsonl FOLDER: reads the folder as TensorBoard does, and compares with the lines that it was made of."""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

with open(sys.argv[1], encoding="utf-8") as lines:
    records = {record["step"]: record for record in map(json.loads, lines)}
events = EventAccumulator(sys.argv[2], size_guidance={"scalars": 0})
events.Reload()


def check(tag, value_of):
    expected = {step: value_of(record) for step, record in records.items() if value_of(record) is not None}
    found = {event.step: event.value for event in events.Scalars(tag)}
    if found.keys() != expected.keys():
        sys.exit(f"{tag}: {len(found)} steps instead of {len(expected)}")
    for step, value in expected.items():
        if abs(found[step] - value) > 1e-6 * abs(value):  # TensorBoard keeps floats
            sys.exit(f"{tag} of step {step}: {found[step]} instead of {value}")


check("profiling/batch_time", lambda record: record["batch_time_s"])
check("profiling/data_time", lambda record: record["data_time_s"])
check("profiling/data_wait", lambda record: record["data_wait_percent"] and record["data_wait_percent"] / 100)
check("profiling/phase/forward", lambda record: next(p["time_s"] for p in record["phases"] if p["name"] == "forward"))
print(f"read back: {events.Tags()['scalars']}")
