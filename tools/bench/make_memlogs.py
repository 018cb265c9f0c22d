#!/usr/bin/env python3
"""Writes the memlogs of a process that is not: REPORTS of STACKS stacks each, to measure memlog with.

usage: make_memlogs.py DIRECTORY REPORTS STACKS

Every stack changes in every report; a few grow without end. Names and depths are as C++ programs
have them. The same arguments make the same files.
"""
import os
import random
import sys

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


def entry(sizes, held, number):
    """(net bytes, blocks, the line) of a stack; SIZES: allocations, allocated, frees, freed."""
    allocations, allocated, frees, freed = sizes
    net, blocks = allocated - freed, allocations - frees
    did = f'\tallocs={allocations}\tallocated={allocated}'
    if frees:
        did += f'\tfrees={frees}\tfreed={freed}'
    return net, blocks, f'{net:+}\tblocks={blocks:+}\tlive={held}{did}\tstack={number}\n'


def write_report(path, head, entries, live, tail):
    """HEAD and TAIL: lines of meta data; ENTRIES: (net bytes, blocks, text), in their order; LIVE:
    bytes and blocks."""
    with open(path, 'w', encoding='ascii') as file:
        file.write('# memlog 2\n' + ''.join(f'# {key}: {value}\n' for key, value in head.items()))
        file.write(f'# delta: {sum(one[0] for one in entries):+} bytes '
                   f'{sum(one[1] for one in entries):+} blocks\n'
                   f'# live: {live[0]} bytes {live[1]} blocks\n'
                   '# lost: frames=0 stacks=0 blocks=0 inflight=0\n')
        file.writelines(one[2] for one in entries)
        file.write(tail + '# end\n')


def main():
    directory, reports, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dice = random.Random(1)
    os.makedirs(directory, exist_ok=True)
    stacks = [(f'{dice.getrandbits(64):016x}', frames(dice, 9, count)) for _ in range(count)]
    held = [0] * count
    blocks = [0] * count
    tail = ''.join(f'# module: {name} build-id={i + 1:040x} base=0x7f{i}000000000\n'
                   for i, name in enumerate(MODULES))
    for seq in range(1, reports + 1):
        entries = []
        for i, (number, lines) in enumerate(stacks):
            allocations = 1 + dice.getrandbits(5)
            frees = min(dice.getrandbits(5), blocks[i]) if i % 100 else 0
            held[i] += 64 * (allocations - frees)
            blocks[i] += allocations - frees
            net, change, line = entry((allocations, 64 * allocations, frees, 64 * frees), held[i], number)
            entries.append((net, change, line + lines))
        entries.sort(key=lambda one: -one[0])
        write_report(f'{directory}/app-4711-{seq}.memlog',
                     {'program': '/usr/bin/app', 'pid': 4711, 'seq': seq, 'trigger': 'signal',
                      'started': time(0), 'taken': time(10 * seq)}, entries,
                     (sum(held), sum(blocks)),
                     f'{tail}# uptime: {10 * seq}.000 seconds\n# resolved: yes\n'
                     '# library: mtrace 0.1.0 allocator=libc.so.6\n')


if __name__ == '__main__':
    main()
