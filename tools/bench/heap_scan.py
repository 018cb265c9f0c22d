#!/usr/bin/python3 -B
"""heap_scan.py [BUILD]: what memlog unreachable costs: time and memory by the shape of the heap.

Prints the table of doc/internals/notebook/reachability.md, "Cost". Times are medians of ROUNDS.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import time

ROUNDS = 5
SHAPES = [("mixed", "1 GiB of blocks of 16 bytes to 1 MiB", 1024),
          ("map", "hash map of numbers to strings", 512),
          ("list", "list of 10 million nodes", 229),
          ("shuffled", "list of a million nodes in no order of addresses", 32)]


def start(build, shape, mib):
    """A program with such a heap, and what it says it has."""
    process = subprocess.Popen(
        [os.path.join(build, "tests/programs/heap_shapes"), shape, str(mib)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "LD_PRELOAD": os.path.join(build, "libmtrace.so"),
             "MTRACE_LEDGER": "/dev/shm"})
    words = process.stdout.readline().split()
    return process, int(words[1]), int(words[2])


def resident(pid):
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Rss:"))


def look(build, pid):
    """One run: seconds of processor, peak memory in bytes, the answer."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    clock = time.monotonic()
    command = subprocess.Popen(
        [os.path.join(build, "memlog"), "unreachable", "--json", "--pause", "0", str(pid)],
        stdout=subprocess.PIPE, text=True)
    out = command.stdout.read()
    _, _, used = os.wait4(command.pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, time.monotonic() - clock, used.ru_maxrss << 10, json.loads(out)


def measure(build, shape, mib):
    process, blocks, size = start(build, shape, mib)
    runs = [look(build, process.pid) for _ in range(ROUNDS)]
    rss = resident(process.pid)
    process.stdin.close()
    process.wait()
    answer = runs[0][3]
    assert answer["definitely_lost_blocks"] == 0 and answer["reachable_blocks"] >= blocks, answer
    stops = [us for run in runs for us in run[3]["stopped_us"]]
    # Both looks: the heap is read twice.
    scanned = 2 * answer["scanned_bytes"]
    cpu = statistics.median(run[0] for run in runs)
    return {"blocks": blocks, "bytes": size, "cpu": cpu, "rate": scanned / cpu,
            "wall": statistics.median(run[1] for run in runs),
            "memory": max(run[2] for run in runs), "resident": rss,
            "stop": statistics.median(stops) / 1000, "stop_most": max(stops) / 1000}


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
    print("| heap | blocks | resident, MiB | both looks, s of processor | GB/s | memlog's memory, "
          "MiB | of the heap | a block, bytes | stop, ms: median, most |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for shape, name, mib in SHAPES:
        got = measure(build, shape, mib)
        print(f"| {name} | {got['blocks']:,} | {got['resident'] >> 20:,} | {got['cpu']:.2f} | "
              f"{got['rate'] / 1e9:.2f} | {got['memory'] >> 20:,} | "
              f"{100 * got['memory'] / got['resident']:.1f} % | {got['memory'] / got['blocks']:.0f} | "
              f"{got['stop']:.1f}, {got['stop_most']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
