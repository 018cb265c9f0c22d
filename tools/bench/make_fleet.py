#!/usr/bin/env python3
"""Writes the memlogs of many simulated hosts, for the queries in doc/fleet.md.

usage: make_fleet.py DIRECTORY HOSTS REPORTS

Each host runs one process of one of three builds, and writes REPORTS reports of 12 stacks, ten
minutes apart. In the newest build cache_put leaks everywhere. Two hosts of that build also leak in
queue_push. All other stacks come and go. The files of a host are in DIRECTORY/HOST. The same
arguments make the same files.
"""
import datetime
import os
import random
import sys

import make_memlogs

FUNCTIONS = ['cache_put', 'queue_push', 'session_open', 'user_load', 'acl_check', 'buffer_grow',
             'parse', 'item_new', 'log_line', 'tls_handshake', 'index_add', 'reply_make']
BUILDS = ['a000', 'a010', 'a020']
ODD_HOSTS = {77, 500}
START = datetime.datetime(2026, 11, 18)
MINUTES = 10  # between two reports


def stack(build, number):
    """Its id and its frames: a build shifts the offsets, so the same functions get another id."""
    offset = 0x1000 + 0x40 * number + 0x10 * build
    frames = (f'\t{FUNCTIONS[number]}\tapp.c:{10 + number}\t(/usr/bin/app+0x{offset:x})\n'
              f'\thandle\tapp.c:90\t(/usr/bin/app+0x{0x8000 + build:x})\n'
              f'\tmain\tapp.c:99\t(/usr/bin/app+0x{0x9000 + build:x})\n')
    return f'{random.Random(100 * build + number).getrandbits(64):016x}', frames


STACKS = [[stack(build, number) for number in range(len(FUNCTIONS))] for build in range(len(BUILDS))]


def time(when):
    return when.strftime('%Y-%m-%dT%H:%M:%S.%fZ')


class Process:
    def __init__(self, host, dice):
        self.host = host
        self.dice = dice
        self.build = host % len(BUILDS)
        self.pid = 1000 + host
        self.started = START + datetime.timedelta(seconds=host)
        self.held = [0] * len(FUNCTIONS)
        self.blocks = [0] * len(FUNCTIONS)

    def leaked(self, number, allocated):
        """Of blocks allocated, those that are never freed."""
        if FUNCTIONS[number] == 'cache_put' and BUILDS[self.build] == 'a020':
            return allocated // 2
        if FUNCTIONS[number] == 'queue_push' and self.host in ODD_HOSTS:
            return allocated * 9 // 10
        return 0

    def entry(self, number):
        """Of what is not leaked about a hundred blocks stay, in turn."""
        size = 16 * (number + 1)
        allocations = 50 + self.dice.randrange(100)
        kept = self.leaked(number, allocations)
        frees = allocations - kept
        if self.blocks[number] < 100:
            frees = min(frees, self.dice.randrange(60))
        frees = min(frees + self.dice.randrange(10), self.blocks[number] + allocations)
        self.blocks[number] += allocations - frees
        self.held[number] += size * (allocations - frees)
        name, frames = STACKS[self.build][number]
        net, blocks, line = make_memlogs.entry(
            (allocations, size * allocations, frees, size * frees), self.held[number], name)
        return net, blocks, line + frames

    def report(self, path, seq):
        taken = self.started + datetime.timedelta(minutes=MINUTES * seq)
        make_memlogs.write_report(
            path, {'program': '/usr/bin/app', 'command': 'app', 'pid': self.pid, 'seq': seq,
                   'trigger': 'interval', 'started': time(self.started), 'taken': time(taken)},
            sorted((self.entry(number) for number in range(len(FUNCTIONS))), reverse=True),
            (sum(self.held), sum(self.blocks)),
            f'# module: /usr/bin/app build-id={BUILDS[self.build]} base=0x55d000000000\n'
            f'# host: web{self.host} boot-id={self.host:08x}-0000-4000-8000-000000000000 '
            'arch=x86_64\n# resolved: yes\n')


def main():
    directory, hosts, reports = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for host in range(1, hosts + 1):
        process = Process(host, random.Random(1000003 + host))
        os.makedirs(f'{directory}/web{host}')
        for seq in range(1, reports + 1):
            process.report(f'{directory}/web{host}/app-{process.pid}-{seq}.memlog', seq)


main()
