#!/usr/bin/python3 -B
"""events.py: what an event log costs beside heaptrack: time, and bytes on disk.

Programs run under nothing, libmtrace, libmtrace with an event log, and heaptrack in turn, several
rounds; what counts is the median of the differences within a round. Writes the measured part of
the document.
"""
import argparse
import glob
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import bench
import contenders as tools
import document
import measured
import programs as workloads

NAMES = ["base", "libmtrace", "with events", "heaptrack"]
INTERPRETERS = ["/usr/lib/heaptrack/libexec/heaptrack_interpret",
                "/usr/lib/x86_64-linux-gnu/libexec/heaptrack_interpret"]


def size_of(command):
    """Bytes that a pipeline prints."""
    return int(subprocess.run(["/bin/bash", "-o", "pipefail", "-c", command + " | wc -c"],
                              check=True, stdout=subprocess.PIPE, text=True).stdout)


class EventRunner(bench.Runner):
    """Measures all processes: also those that make heaptrack's file of what the program tells."""
    PIPE = "heaptrack.pipe"  # in the directory where the program runs

    def run(self, contender):
        self.maker = None
        if contender.name == "heaptrack":
            self.maker = self.start_maker()
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        clock = time.monotonic()
        sample = super().run(contender)
        if not self.program.server:  # of a server, the load is what takes time
            sample["wall"] = self.ended - clock
        sample["cpu"] = self.cpu - begin.ru_utime - begin.ru_stime
        return sample

    def start_maker(self):
        pipe = os.path.join(self.scratch, self.PIPE)
        self.made = os.path.join(self.scratch, "heaptrack.zst")
        if not os.path.exists(pipe):
            os.mkfifo(pipe)
        interpreter = next(path for path in INTERPRETERS if os.path.exists(path))
        return subprocess.Popen(["/bin/bash", "-c", f"'{interpreter}' <'{pipe}' | zstd -cq"],
                                stdout=open(self.made, "wb"), stderr=subprocess.DEVNULL)

    def files(self, out):
        if self.maker:
            self.maker.wait(bench.PATIENCE)
        self.ended = time.monotonic()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu = usage.ru_utime + usage.ru_stime
        found = {"written": 0, "raw": 0, "events": 0}
        for log in glob.glob(out + "/*.events"):
            found["written"] += os.path.getsize(log)
            found["raw"] += size_of(f"zstd -dc '{log}'")
            count = subprocess.run(
                [os.path.join(self.build, "memlog"), "sql", "--no-resolve", "--format", "csv",
                 "select count(*) from events where kind <> 'inherited'", log],
                check=True, stdout=subprocess.PIPE, text=True).stdout
            found["events"] += int(count.split()[1])
        if self.maker:
            found["written"] = os.path.getsize(self.made)
        return found


def chosen_programs(scale):
    wanted = {"python3", "clang++", "sqlite3", "redis"}
    pairs = max(1000, 200_000 // scale)
    own = [workloads.own("churn, pairs", f"{pairs:,} pairs of malloc and free",
                         ["pairs", 1, 12, pairs]),
           workloads.own("churn, mix", f"1,000 live blocks, {pairs:,} freed at random",
                         ["mix", 1, 100, 1000, pairs])]
    return [one for one in workloads.real_programs(scale) if one.name in wanted] + own


def measure(program, chosen, args):
    samples = {name: [] for name in NAMES}
    with tempfile.TemporaryDirectory(prefix="mtrace-bench-") as scratch:
        if program.prepare:
            program.prepare(scratch)
        runner = EventRunner(args.build, program, scratch)
        runner.run(chosen["base"])  # to warm up
        for number in range(args.rounds):
            for name in NAMES[number % 4:] + NAMES[:number % 4]:
                try:
                    samples[name].append(runner.run(chosen[name]))
                except bench.Failed as error:
                    bench.progress(f"{program.name}: {name}: {error}")
                    if name != "heaptrack":  # whose interpreter ends at some programs
                        raise
    return samples


def added(samples, name, key):
    return statistics.median(one[key] - base[key]
                             for one, base in zip(samples[name], samples["base"]))


def row(program, samples):
    middle = samples["with events"][0]
    events = statistics.median(one["events"] for one in samples["with events"])
    written = statistics.median(one["written"] for one in samples["with events"])
    kept = [name for name in NAMES if len(samples[name]) == len(samples["base"])]
    times = [f"{added(samples, name, 'cpu'):.2f} ({added(samples, name, 'wall'):.2f})"
             if name in kept else "failed" for name in NAMES[1:]]
    share, file = "", "failed"
    if "heaptrack" in kept:
        share = f"{added(samples, 'with events', 'cpu') / added(samples, 'heaptrack', 'cpu'):.0%}"
        file = f"{statistics.median(one['written'] for one in samples['heaptrack']) / 1000:,.0f} KB"
    base = statistics.median(one["cpu"] for one in samples["base"])
    return [f"{program.name}: {program.about}", f"{base:.2f}", *times, share,
            f"{events:,.0f}", f"{middle['raw'] / events:.1f}, {written / events:.1f}",
            f"{written / 1000:,.0f} KB, {file}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="where libmtrace.so is")
    parser.add_argument("--document", help="the page whose table this is")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=int, default=1, help="divides the work")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    chosen, missing = tools.find(args.build)
    if "heaptrack" not in chosen:
        sys.exit("events.py: " + ", ".join(missing))
    chosen["heaptrack"].environment["DUMP_HEAPTRACK_OUTPUT"] = EventRunner.PIPE
    chosen["libmtrace"] = tools.mtrace(args.build, "libmtrace", "with names in its report",
                                       MTRACE_EXIT_WAIT="600",
                                       MTRACE_RESOLVER=os.path.join(args.build, "memlog"))
    chosen["with events"] = tools.mtrace(args.build, "with events", "with MTRACE_EVENTS",
                                         MTRACE_EVENTS="{out}/", MTRACE_EXIT_WAIT="600",
                                         MTRACE_RESOLVER=os.path.join(args.build, "memlog"))
    rows = []
    for program in chosen_programs(args.scale):
        if program.missing():
            bench.progress(f"{program.name}: {', '.join(program.missing())} is not installed")
            continue
        bench.progress(program.name)
        rows.append(row(program, measure(program, chosen, args)))
    head = ["program", "alone, s", "mtrace, s more", "with events, s more", "heaptrack, s more",
            "events to heaptrack", "events", "bytes an event, before and after zstd",
            "file, heaptrack's file"]
    text = document.markdown(head, rows)
    print(text, end="")
    if args.document:
        measured.replace(args.document, text + "\n")


if __name__ == "__main__":
    main()
