#!/usr/bin/env python3
"""Writes the memlogs of a process that is not: REPORTS of STACKS stacks each, to measure memlog with.

usage: make_memlogs.py [--depth N] [--seed N] DIRECTORY REPORTS STACKS

Every stack changes in every report; a few grow without end. Names and depths are as C++ programs
have them. The same arguments make the same files.
"""
import argparse
import os
import random

MODULES = ['/usr/bin/app', '/usr/lib/libstdc++.so.6', '/usr/lib/libc.so.6', '/opt/app/libmodel.so']
WORDS = ['load', 'parse', 'node', 'cache', 'session', 'buffer', 'index', 'query', 'worker', 'queue']


def frames(dice, depth, functions):
    """The lines of a stack: what it has in common with others is at its outer end."""
    lines = []
    for level in range(depth):
        number = dice.randrange(max(1, functions >> (level // 2)))
        words = [WORDS[(number >> (3 * i)) % len(WORDS)] for i in range(3)]
        inner = f'std::map<std::string, app::{words[0]}>' if number % 3 else f'app::{words[0]}&'
        module = MODULES[number % len(MODULES)]
        lines.append(f'\tapp::{words[1]}::{words[2]}_{number}({inner} const&, unsigned long)\t'
                     f'{words[2]}_{number % 97}.cc:{10 + number % 900}\t'
                     f'({module}+0x{0x1000 + 16 * number + level:x})\n')
    return ''.join(lines) + '\tmain\tmain.cc:40\t(/usr/bin/app+0x1105)\n'


def time(seconds):
    return f'2026-11-20T{10 + seconds // 3600 % 13:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.000000Z'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--depth', type=int, default=10)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('directory')
    parser.add_argument('reports', type=int)
    parser.add_argument('stacks', type=int)
    given = parser.parse_args()
    dice = random.Random(given.seed)
    os.makedirs(given.directory, exist_ok=True)
    stacks = [(f'{dice.getrandbits(64):016x}', frames(dice, given.depth - 1, given.stacks))
              for _ in range(given.stacks)]
    held = [0] * given.stacks
    blocks = [0] * given.stacks
    tail = ''.join(f'# module: {name} build-id={i + 1:040x} base=0x7f{i}000000000\n'
                   for i, name in enumerate(MODULES))
    for seq in range(1, given.reports + 1):
        entries = []
        for i in range(given.stacks):
            allocations = 1 + dice.getrandbits(5)
            frees = min(dice.getrandbits(5), blocks[i]) if i % 100 else 0
            allocated = 64 * allocations
            freed = 64 * frees
            held[i] += allocated - freed
            blocks[i] += allocations - frees
            entries.append((allocated - freed, i, allocations, allocated, frees, freed))
        entries.sort(reverse=True)
        change = sum(entry[0] for entry in entries)
        count = sum(entry[2] - entry[4] for entry in entries)
        path = f'{given.directory}/app-4711-{seq}.memlog'
        with open(path, 'w', encoding='ascii') as file:
            file.write('# memlog 2\n# program: /usr/bin/app\n# pid: 4711\n'
                       f'# seq: {seq}\n# trigger: signal\n# started: {time(0)}\n'
                       f'# taken: {time(10 * seq)}\n# delta: {change:+} bytes {count:+} blocks\n'
                       f'# live: {sum(held)} bytes {sum(blocks)} blocks\n'
                       '# lost: frames=0 stacks=0 blocks=0 inflight=0\n')
            for net, i, allocations, allocated, frees, freed in entries:
                did = f'\tallocs={allocations}\tallocated={allocated}'
                if frees:
                    did += f'\tfrees={frees}\tfreed={freed}'
                name, lines = stacks[i]
                file.write(f'{net:+}\tblocks={allocations - frees:+}\tlive={held[i]}{did}\t'
                           f'stack={name}\n{lines}')
            file.write(tail + f'# uptime: {10 * seq}.000 seconds\n# resolved: yes\n'
                       '# library: mtrace 0.1.0 allocator=libc.so.6\n# end\n')


main()
