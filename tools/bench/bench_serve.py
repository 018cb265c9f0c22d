#!/usr/bin/env python3
"""Measures memlog serve over many processes, and what its readers cost a traced program.

usage: bench_serve.py [--build DIR] [--processes N] [--only PART]

- a page of --processes processes: seconds until the first rows are drawn in Chromium, and all (when
  playwright-core is there), processor time of the server for one refresh
- /metrics of a tenth as many, of 1,000 stacks each: seconds of a scrape, once the names are
  known and while the processes allocate
- memory of the server after /metrics of a 25th as many, of 10,000 stacks each, and what each of
  them adds
- processor time of a program that allocates all the time (tools/bench/churn) on one core, with and
  without a reader of its functions 10 times a second from another core; the median of the pairs'
  ratios
"""
import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TICK = os.sysconf('SC_CLK_TCK')
PAIRS = 15  # of runs with and without a reader


def traced(build, directory):
    return dict(os.environ, LD_PRELOAD=os.path.abspath(f'{build}/libmtrace.so'),
                MTRACE_LEDGER=directory, MTRACE_OUTPUT=directory, MTRACE_EXIT_REPORT='0')


class Programs:
    """Traced processes of tools/bench/churn, with ledgers in `directory`."""

    def __init__(self, build, directory, count, stacks):
        environment = traced(build, directory)
        self.all = [subprocess.Popen([f'{build}/tools/bench/churn', 'stacks', str(stacks)], env=environment,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                    for _ in range(count)]
        for one in self.all:
            if one.stdout.readline() != b'ready\n':
                sys.exit('churn does not start')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self.all:
            one.stdin.close()
        for one in self.all:
            one.wait()

    def pids(self):
        return [str(one.pid) for one in self.all]

    def work(self):
        for one in self.all:
            one.stdin.write(b'0123456789')
            one.stdin.flush()


def on_core(number):
    """Of two or more: a program and its reader then do not take turns."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


class Server:
    def __init__(self, build, pids, prepare=None):
        self.process = subprocess.Popen(
            [f'{build}/memlog', 'serve', '--listen', '127.0.0.1:0', '--max-rate', '0', *pids],
            stdout=subprocess.PIPE, text=True, preexec_fn=prepare)
        self.address = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.address + path) as answer:
            return answer.read()

    def timed(self, path):
        start = time.monotonic()
        self.get(path)
        return time.monotonic() - start

    def processor(self):
        """Seconds so far, of all threads."""
        with open(f'/proc/{self.process.pid}/stat', encoding='ascii') as file:
            fields = file.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self, key='VmHWM'):
        """MiB."""
        with open(f'/proc/{self.process.pid}/status', encoding='ascii') as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1024


def first_paint(build, address, processes):
    """Seconds until the first rows are drawn, and all: medians of five. None without a browser."""
    modules = os.path.abspath(f'{build}/npm/node_modules')
    if not os.path.isdir(f'{modules}/playwright-core') or not shutil.which('chromium'):
        return None
    words = ['node', f'{HERE}/serve_paint.cjs', address, str(processes)]
    done = subprocess.run(words, env=dict(os.environ, NODE_PATH=modules), check=True,
                          stdout=subprocess.PIPE, text=True)
    rounds = [[float(word) for word in line.split()] for line in done.stdout.splitlines()]
    return [statistics.median(column) for column in zip(*rounds)]


def page(build, directory, count):
    with Programs(build, directory, count, 10) as programs, Server(build, programs.pids()) as server:
        server.get('/api/processes')
        rounds = 20
        before = server.processor()
        for _ in range(rounds):
            programs.work()
            server.get('/api/processes')
        refresh = (server.processor() - before) / rounds
        paint = first_paint(build, server.address, count)
    if paint is not None:
        yield f'page of {count:,} processes, first rows drawn', f'{paint[0]:.2f} s'
        yield f'page of {count:,} processes, all rows drawn', f'{paint[1]:.2f} s'
    yield f'refresh of {count:,} processes, processor time', f'{1000 * refresh:.0f} ms'


def scrape(build, directory, count, stacks):
    with Programs(build, directory, count, stacks) as programs:
        with Server(build, programs.pids()) as server:
            first = server.timed('/metrics')
            rounds = 15
            times = []
            before = server.processor()
            for _ in range(rounds):
                programs.work()
                times.append(server.timed('/metrics'))
            processor = (server.processor() - before) / rounds
    name = f'/metrics of {count:,} processes of {stacks:,} stacks'
    yield f'{name}, first', f'{first:.2f} s'
    yield f'{name}, later', (f'{1000 * statistics.median(times):.0f} ms, '
                             f'of the processor {1000 * processor:.0f} ms')


def memory(build, directory, count):
    most = {}
    for part in (count // 2, count):
        with Programs(build, directory, part, 10000) as programs:
            with Server(build, programs.pids()) as server:
                for _ in range(3):
                    programs.work()
                    server.get('/metrics')
                for pid in programs.pids()[:8]:
                    server.get(f'/api/processes/{pid}/functions')
                most[part] = server.memory()
    each = (most[count] - most[count // 2]) / (count - count // 2)
    yield f'memory of the server, {count:,} processes of 10,000 stacks', f'{most[count]:.0f} MiB'
    yield 'each process more', f'{1024 * each:.0f} KiB'
    yield '1,000 processes by that', f'{most[count] + (1000 - count) * each:.0f} MiB'


def churn(build, directory, watched):
    """Seconds of the processor that a run takes."""
    words = [f'{build}/tools/bench/churn', 'mix', '1', '200', '100000', '5000000']
    process = subprocess.Popen(words, env=traced(build, directory), stdout=subprocess.DEVNULL,
                               preexec_fn=lambda: on_core(0))
    with contextlib.ExitStack() as stack:
        if watched:
            time.sleep(0.1)
            server = stack.enter_context(Server(build, [str(process.pid)], lambda: on_core(1)))
            with contextlib.suppress(OSError):  # once the process has ended
                # Not poll(), which would take the status that wait4() is for.
                while not os.waitid(os.P_PID, process.pid,
                                    os.WEXITED | os.WNOHANG | os.WNOWAIT):
                    server.get(f'/api/processes/{process.pid}/functions')
                    time.sleep(0.1)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
    return used.ru_utime + used.ru_stime


def readers(build, directory):
    ratios = []
    for _ in range(PAIRS):
        alone = churn(build, directory, False)
        ratios.append(churn(build, directory, True) / alone)
    yield ('processor time of a program with a reader at 10 Hz',
           f'{100 * (statistics.median(ratios) - 1):+.1f} % ({PAIRS} pairs, {100 * (min(ratios) - 1):+.1f} '
           f'to {100 * (max(ratios) - 1):+.1f})')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--build', default='build')
    parser.add_argument('--processes', type=int, default=1000)
    parser.add_argument('--only', choices=('page', 'scrape', 'memory', 'readers'))
    given = parser.parse_args()
    print('| what | measured |\n| --- | --- |')
    with tempfile.TemporaryDirectory() as directory:
        parts = {'page': lambda: page(given.build, directory, given.processes),
                 'scrape': lambda: scrape(given.build, directory, given.processes // 10, 1000),
                 'memory': lambda: memory(given.build, directory, given.processes // 25),
                 'readers': lambda: readers(given.build, directory)}
        for name, part in parts.items():
            for what, measured in part() if given.only in (None, name) else ():
                print(f'| {what} | {measured} |', flush=True)


main()
