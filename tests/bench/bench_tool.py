#!/usr/bin/env python3
"""Measures memlog: time and memory of its commands on a series of large reports.

usage: bench_tool.py [--build DIR] [--reports N] [--stacks N] DIRECTORY

The reports are made in DIRECTORY by make_memlogs.py, if they are not there, and stay there. A
second set is one report of --single stacks.
"""
import argparse
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build')
    parser.add_argument('--reports', type=int, default=100)
    parser.add_argument('--stacks', type=int, default=10000)
    parser.add_argument('--single', type=int, default=0, help='stacks of one large report')
    parser.add_argument('directory')
    given = parser.parse_args()
    memlog = f'{given.build}/memlog'
    # More names than that do not fit a command line.
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.RLIM_INFINITY))
    files = make(f'{given.directory}/{given.reports}x{given.stacks}', given.reports, given.stacks)
    size = sum(map(os.path.getsize, files)) / 2**20
    print(f'{len(files)} reports of {given.stacks:,} stacks, {size:,.0f} MiB\n')
    series = [['show', files[-1]], ['show', '--sum'] + files, ['tree', '--sum'] + files,
              ['leaks'] + files, ['diff', files[0], files[-1]],
              ['check', '--max-growth', '1T'] + files]
    series += [['export', '-f', name] + files for name in FORMATS]
    rows = [(' '.join(words[:3] if words[0] == 'export' else words[:1 + (words[1][0] == '-')]),
             measure([memlog] + words)) for words in series]
    if given.single:
        large = make(f'{given.directory}/1x{given.single}', 1, given.single)
        size = os.path.getsize(large[0]) / 2**20
        for words in (['show'], ['export', '-f', 'folded'], ['export', '-f', 'csv'],
                      ['export', '-f', 'jsonl']):
            rows.append((f'{" ".join(words)}, one report of {size:,.0f} MiB',
                         measure([memlog] + words + large)))
    print('| command | seconds | of the processor | MiB |\n| --- | --- | --- | --- |')
    for name, (seconds, processor, peak) in rows:
        print(f'| {name} | {seconds:.1f} | {processor:.1f} | {peak:,.0f} |')


main()
