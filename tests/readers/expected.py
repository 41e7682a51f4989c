"""The records that write_records.cpp has written, as it says itself in expected.txt."""

import sys


def check(holds, what):
    if not holds:
        sys.exit("not true: " + what)


class Record:
    """Times in ns, None for what is absent; phases are pairs of the name as it is to be shown, and the time."""

    def __init__(self, line):
        words = line.split()
        number = [None if word == "-" else int(word) for word in words[:13]]
        (self.step, self.host_start, self.batch_time, self.wall_gap, self.data_time, self.host_batch_time,
         self.host_wall_gap, self.items, self.warmup, self.fetch_time, self.exposed_fetch, self.device_drained,
         self.steps_ahead) = number
        self.phases = []
        for word in words[13:]:
            name, time = word.split("=")
            kept = bytes(max(byte, 0x20) for byte in bytes.fromhex(name))[:40]
            self.phases.append((kept.decode(errors="ignore"), int(time)))


def expected_records(folder):
    with open(folder + "/expected.txt") as lines:
        return [Record(line) for line in lines]


class ExpectedTrace:
    """Where the first 500 of them lie in a trace: (name, start, length) on each track, in ns."""

    def __init__(self, folder):
        self.records = expected_records(folder)[:500]
        self.host, self.device, self.phases = [], [], []
        reached = 0
        for record in self.records:
            name = f"step {record.step}"
            self.host.append((name, record.host_start, record.host_batch_time))
            start = max(reached, record.host_start)
            self.device.append((name, start, record.batch_time))
            reached = start
            for phase, time in record.phases:
                if phase:
                    self.phases.append((phase, reached, time))
                reached += time
            reached = start + record.batch_time
            if record.data_time:
                self.device.append(("data wait", reached, record.data_time))
                reached += record.data_time
