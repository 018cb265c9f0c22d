#!/usr/bin/env python3
"""How many faults the tests find: mutants of src, all in one build, of which a variable chooses one.

  mutants.py plant TREE [--count N] [--seed N] [--under FOLDER]
      puts N mutants into the sources of TREE, a copy of the project: a condition negated, a
      comparison that takes the equal case or leaves it out, a statement left out, a constant one
      more. Each stands behind MUTANT(n).
  mutants.py build TREE TARGET...
      builds there, and takes out the mutants that do not compile.
  mutants.py run TREE BINARY... [--skip REGEX]
      runs the tests of BINARY (build/tests/unit_tool) that reach a mutant under it, until one
      fails. Prints the mutants that none finds, and the share that some test finds.

Andrews, Briand, Labiche, "Is mutation an appropriate tool for testing experiments?", ICSE 2005, has
these kinds of mutants, and why the share stands for real faults.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import time

HEADER = r'''// Written by tools/mutants.py.
#pragma once
extern "C" char** environ;
namespace mutants {
inline int chosen = -1;
inline unsigned char* reached = nullptr;
// Raw system calls: the library's own are hooked.
inline long call(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
inline const char* value(const char* name) {
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const char* at = *one;
    const char* want = name;
    while (*want != 0 && *at == *want) ++at, ++want;
    if (*want == 0 && *at == '=') return at + 1;
  }
  return nullptr;
}
inline int is(int number) {
  if (chosen < 0) {
    if (environ == nullptr) return 0;
    chosen = 0;
    if (const char* text = value("MUTANT")) {
      for (; *text >= '0' && *text <= '9'; ++text) chosen = chosen * 10 + (*text - '0');
    }
    if (const char* path = value("MUTANTS_REACHED")) {
      const long file = call(2, (long)path, 2, 0, 0, 0, 0);
      if (file >= 0) {
        const long map = call(9, 0, 4096, 3, 1, file, 0);
        if (map > 0) reached = (unsigned char*)map;
        call(3, file, 0, 0, 0, 0, 0);
      }
    }
  }
  if (reached != nullptr) reached[number] = 1;
  return chosen == number;
}
}  // namespace mutants
#define MUTANT(n) ::mutants::is(n)
'''

CONDITION = re.compile(r'^(\s*(?:\} else )?if )\((.*)\)( \{| return.*;| continue;| break;)$')
COMPARISON = re.compile(r'^([\w.>\-()\[\]:]+) (<|<=|>|>=) ([\w.>\-()\[\]:]+)$')
STATEMENT = re.compile(r'^(\s+)((?:\+\+|--)?[\w.>\-\[\]]+(?:\(.*\)| (?:=|\+=|-=|\|=) .*)?;)$')
CONSTANT = re.compile(r'(?<![\w.\'"<\[])([1-9]\d{0,3})(?![\w.\'">\]])')
NO_STATEMENT = re.compile(r'^\s*(return|break|continue|case|using|goto|throw|delete|static_assert|default|public|private)\b')


def balanced(text):
    depth = 0
    for c in text:
        depth += (c == '(') - (c == ')')
        if depth < 0:
            return False
    return depth == 0


def mutants_of(line, before):
    """The forms that a line can have, with {} for MUTANT(n)."""
    if '"' in line or "'" in line or '//' in line or 'constexpr' in line or '#' in line:
        return []
    forms = []
    found = CONDITION.match(line)
    if found and balanced(found[2]) and ' = ' not in found[2] and ';' not in found[2]:
        forms.append(f'{found[1]}(static_cast<bool>({found[2]}) != {{}}){found[3]}')
        compared = COMPARISON.match(found[2])
        if compared:
            other = {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}[compared[2]]
            a, b = compared[1], compared[3]
            forms.append(f'{found[1]}({{}} ? {a} {other} {b} : {a} {compared[2]} {b}){found[3]}')
    starts = before.rstrip().endswith(('{', '}', ';')) or not before.strip()
    statement = STATEMENT.match(line)
    if statement and starts and balanced(line) and not NO_STATEMENT.match(line):
        forms.append(f'{statement[1]}if (!{{}}) {statement[2]}')
    constant = CONSTANT.search(line)
    if constant and line.rstrip().endswith(';') and re.search(r'(return| = |\().*', line):
        forms.append(line[:constant.start()] + f'({constant[1]} + {{}})' + line[constant.end():])
    return [form for form in forms if form.count('{}') == 1]


def plant(arguments):
    tree = pathlib.Path(arguments.tree)
    chance = random.Random(arguments.seed)
    candidates = []
    for path in sorted(tree.glob(f'{arguments.under}/**/*.cc')):
        lines = path.read_text().split('\n')
        for i in range(1, len(lines)):
            for form in mutants_of(lines[i], lines[i - 1]):
                candidates.append((path, i, form))
    chance.shuffle(candidates)
    taken = {}
    for path, i, form in candidates:
        if len(taken) == arguments.count:
            break
        taken.setdefault((path, i), form)
    with open(tree / 'mutants', 'w') as listed:
        for number, ((path, i), form) in enumerate(sorted(taken.items()), 1):
            lines = path.read_text().split('\n')
            was = lines[i]
            lines[i] = form.replace('{}', f'MUTANT({number})', 1)
            path.write_text('\n'.join(lines))
            listed.write(f'{number}\t{path.relative_to(tree)}:{i + 2}\t{was}\t{lines[i].strip()}\n')
    for path in {path for path, _ in taken}:
        path.write_text('#include "mutants.h"\n' + path.read_text())
    (tree / 'src/mutants.h').write_text(HEADER)
    # The tests give the programs an environment of their own.
    support = tree / 'tests/support/process.cc'
    text = support.read_text()
    place = text.index('plain_environment(const std::string& home)')
    end = text.index('\n}', place)
    body = text[place:end]
    begin = body.index('{') + 1
    body = body[:begin] + '\n  auto made = [&]() -> std::map<std::string, std::string> {' + body[begin:] + '''
  }();
  for (const char* name : {"MUTANT", "MUTANTS_REACHED"}) {
    if (const char* value = std::getenv(name)) made[name] = value;
  }
  return made;'''
    text = '#include <cstdlib>\n' + text[:place] + body + text[end:]
    support.write_text(text)
    print(f'{len(taken)} mutants of {len(candidates)}')


def listed(tree):
    mutants = {}
    for line in open(pathlib.Path(tree) / 'mutants'):
        number, place, was, now = line.rstrip('\n').split('\t')
        mutants[int(number)] = (place, was, now)
    return mutants


def build(arguments):
    tree = pathlib.Path(arguments.tree)
    for _ in range(20):
        done = subprocess.run(['make', '-k', '-C', str(tree), *arguments.targets],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            break
        bad = set(re.findall(r'^(?:\./)?(src/\S+\.cc:\d+):\d+: (?:error|.*constant expression)', done.stdout, re.M))
        undone = 0
        lines = []
        for number, (place, was, now) in listed(tree).items():
            if place in bad:
                path, at = place.split(':')
                text = (tree / path).read_text().split('\n')
                text[int(at) - 1] = was
                (tree / path).write_text('\n'.join(text))
                undone += 1
            else:
                lines.append(f'{number}\t{place}\t{was}\t{now}\n')
        (tree / 'mutants').write_text(''.join(lines))
        print(f'{undone} do not compile')
        if not undone:
            print(done.stdout[-3000:])
            return 1
    print(f'{len(listed(tree))} mutants')
    return 0


class Runner:
    def __init__(self, tree, binaries, skip):
        self.tree = pathlib.Path(tree).resolve()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(('MTRACE_', 'MUTANT'))}
        self.environment.update(MTRACE_SOURCE_DIR=str(self.tree), MTRACE_BUILD_DIR=str(self.tree / 'build'),
                                MEMLOG_BYTES='1')
        self.pieces = []
        for binary in binaries:
            text = subprocess.run([self.tree / binary, '--gtest_list_tests'], env=self.environment,
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
            suite = ''
            for line in text.splitlines():
                if not line.startswith(' '):
                    suite = line.split()[0]
                elif not re.search(skip, suite + line.split()[0]):
                    self.pieces.append((binary, suite + line.split()[0]))

    def run(self, piece, mutant, reach=None):
        """Whether the test passes."""
        environment = dict(self.environment, MUTANT=str(mutant))
        if reach:
            environment['MUTANTS_REACHED'] = str(reach)
        try:
            done = subprocess.run([self.tree / piece[0], '--gtest_filter=' + piece[1], '--gtest_brief=1'], env=environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=180, cwd=self.tree)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def run(arguments):
    mutants = listed(arguments.tree)
    runner = Runner(arguments.tree, arguments.binaries, arguments.skip)
    reaching = {number: [] for number in mutants}
    scratch = pathlib.Path(arguments.tree) / 'reached'
    scratch.mkdir(exist_ok=True)

    def look(at):
        piece = runner.pieces[at]
        reach = (scratch / str(at)).resolve()
        reach.write_bytes(bytes(4096))
        begun = time.monotonic()
        good = runner.run(piece, 0, reach)
        return piece, good, time.monotonic() - begun, [n for n, b in enumerate(reach.read_bytes()) if b]

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for piece, good, took, found in pool.map(look, range(len(runner.pieces))):
            if not good:
                print('fails without a mutant:', piece[1], flush=True)
                continue
            for number in found:
                if number in reaching:
                    reaching[number].append((took, piece))
        reached = [n for n in reaching if reaching[n]]
        print(f'{len(reached)} of {len(mutants)} mutants are reached', flush=True)

        def hunt(number):
            for _, piece in sorted(reaching[number]):
                if not runner.run(piece, number):
                    return number, piece[1]
            return number, None

        found = 0
        for number, by in pool.map(hunt, reached):
            found += by is not None
            place, was, now = mutants[number]
            print(f'{number}\t{by or "NOT FOUND"}\t{place}\t{now if not by else ""}', flush=True)
    print(f'found {found} of {len(reached)} that are reached: {100 * found / max(1, len(reached)):.1f} %')
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    planting = commands.add_parser('plant')
    planting.add_argument('tree')
    planting.add_argument('--count', type=int, default=200)
    planting.add_argument('--seed', type=int, default=1)
    planting.add_argument('--under', default='src/memlog')
    planting.set_defaults(call=plant)
    building = commands.add_parser('build')
    building.add_argument('tree')
    building.add_argument('targets', nargs='+')
    building.set_defaults(call=build)
    running = commands.add_parser('run')
    running.add_argument('tree')
    running.add_argument('binaries', nargs='+')
    running.add_argument('--skip', default='^$')
    running.add_argument('--jobs', type=int, default=os.cpu_count())
    running.set_defaults(call=run)
    arguments = parser.parse_args()
    return arguments.call(arguments)


if __name__ == '__main__':
    sys.exit(main())
