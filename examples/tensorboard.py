#!/usr/bin/env python3
"""Turns the JSON lines of a training into TensorBoard's input: scalars by step, under the names of metrics.hpp.

    cpu_training --jsonl steps.jsonl
    examples/tensorboard.py steps.jsonl runs/first
    tensorboard --logdir runs

The files are written by PyTorch's SummaryWriter, or by that of tensorboardX where there is no PyTorch.
"""
import json
import sys


def stop(sentence):
    print(f"examples/tensorboard.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def summary_writer(folder):
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            stop("needs tensorboard with PyTorch, or tensorboardX: pip install tensorboardX")
    return SummaryWriter(folder)


def scalars(record):
    """Names and values of what a record knows; shares run from 0 to 1, times are seconds."""
    for name in ("batch_time", "data_time", "fetch_time", "exposed_fetch"):
        if record[f"{name}_s"] is not None:
            yield f"profiling/{name}", record[f"{name}_s"]
    for name in ("data_wait", "host_data_wait"):
        if record[f"{name}_percent"] is not None:
            yield f"profiling/{name}", record[f"{name}_percent"] / 100
    if record["device_drained"] is not None:
        yield "profiling/device_drained", float(record["device_drained"])
    for phase in record["phases"]:
        if phase["name"]:
            yield f"profiling/phase/{phase['name']}", phase["time_s"]


def main():
    if len(sys.argv) != 3:
        stop("usage: examples/tensorboard.py steps.jsonl FOLDER")
    try:
        with open(sys.argv[1], encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
            values = [(record["step"], list(scalars(record))) for record in records if not record["warmup"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        stop(f"{sys.argv[1]} is no file that --jsonl has written ({error})")
    writer = summary_writer(sys.argv[2])
    for step, of_step in values:
        for name, value in of_step:
            writer.add_scalar(name, value, step)
    writer.close()
    print(f"{len(values)} steps in {sys.argv[2]}")


if __name__ == "__main__":
    main()
