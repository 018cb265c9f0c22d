#!/usr/bin/env python3
"""bench_tool.py DIRECTORY REPORTS STACKS: time and memory of memlog's commands on large reports.

The reports are made in DIRECTORY, which is beside memlog, by make_memlogs.py, if they are not there,
and stay there.
"""
import glob
import os
import resource
import subprocess
import sys
import time

FORMATS = ('folded', 'speedscope', 'pprof', 'callgrind', 'massif', 'heaptrack', 'dot', 'gprof2dot', 'csv',
           'jsonl')


def make(directory, reports, stacks):
    marker = f'{directory}/app-4711-{reports}.memlog'
    if not os.path.exists(marker):
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run([sys.executable, f'{here}/make_memlogs.py', directory, str(reports),
                        str(stacks)], check=True)
    return sorted(glob.glob(f'{directory}/*.memlog'))


def measure(words):
    """Seconds, seconds of the processor, MiB at most."""
    start = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f'{" ".join(words[:4])} ...: status {status}')
    return time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    directory, reports, stacks = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    memlog = f'{os.path.dirname(directory)}/memlog'
    # More names than that do not fit a command line.
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.RLIM_INFINITY))
    files = make(f'{directory}/{reports}x{stacks}', reports, stacks)
    size = sum(map(os.path.getsize, files)) / 2**20
    print(f'{len(files)} reports of {stacks:,} stacks, {size:,.0f} MiB\n')
    series = [['show', files[-1]], ['show', '--sum'] + files, ['tree', '--sum'] + files,
              ['leaks'] + files, ['diff', files[0], files[-1]],
              ['check', '--max-growth', '1T'] + files]
    series += [['export', '-f', name] + files for name in FORMATS]
    rows = [(' '.join(words[:3] if words[0] == 'export' else words[:1 + (words[1][0] == '-')]),
             measure([memlog] + words)) for words in series]
    print('| command | seconds | of the processor | MiB |\n| --- | --- | --- | --- |')
    for name, (seconds, processor, peak) in rows:
        print(f'| {name} | {seconds:.1f} | {processor:.1f} | {peak:,.0f} |')


main()
