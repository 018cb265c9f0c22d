#!/usr/bin/python3
"""samples.py BUILD [--check] DOCUMENT...: makes the samples of output in documents again.

A block of code that begins with "$ memlog" is a sample: each line after "$ " is run, and what it
prints takes the place of the lines below it, where a line "..." stands for lines that are left out.
The program is doc/examples/app.c. Process 4711 was asked for a report after each second of work, 5012
runs without the library, 4700 is what memlog run starts. --check writes nothing, and fails when a
sample differs in more than its numbers.
"""

import difflib
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile

BLOCKS = {".html": r"(<pre><code>)(\$ memlog.*?)(</code></pre>)",
          "": r"(```(?:console)?\n|(?<=\n\n)(?=    ))(\$ memlog.*?|    \$ memlog.*?)(\n```|(?=\n\n(?!    )))"}
PHASES = 7


class Service:
    """A process of app.c, which tells on its standard output that a phase of work is done."""

    def __init__(self, build, scratch, number, traced, phases):
        env = dict(os.environ, LD_PRELOAD=f"{build}/libmtrace.so") if traced else None
        self.number = number  # in documents
        self.process = subprocess.Popen(["./app", str(phases)], cwd=scratch, env=env, text=True,
                                        stdout=subprocess.PIPE)

    def work(self):
        self.process.stdout.readline()


class Samples:
    def __init__(self, build, scratch):
        self.scratch = scratch
        source = os.path.join(os.path.dirname(__file__), "../examples/app.c")
        shutil.copy(source, scratch)
        os.symlink(f"{build}/libmtrace.so", f"{scratch}/libmtrace.so")
        subprocess.run(["cc", "-g", "-o", "app", "app.c"], cwd=scratch, check=True)
        self.env = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
        self.pids = {}
        traced = Service(scratch, scratch, "4711", True, PHASES + 1)
        self.know(traced)
        for _ in range(PHASES):
            traced.work()
            self.run(f"memlog report {traced.process.pid}")
        traced.process.communicate()
        self.running = Service(build, scratch, "5012", False, 600)
        self.know(self.running)

    def know(self, service):
        self.pids[str(service.process.pid)] = service.number

    def run(self, command):
        for pid, number in self.pids.items():
            command = re.sub(rf"\b{number}\b", pid, command)
        done = subprocess.run(["bash", "-c", command], cwd=self.scratch, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        started = re.search(r"^memlog: \./app \((\d+)\)", done.stdout, re.MULTILINE)
        if started:
            self.pids[started[1]] = "4700"
        text = done.stdout.replace(self.scratch, "/home/me")
        for pid, number in self.pids.items():
            text = re.sub(rf"(?m)^{pid}(?=  )", number.rjust(len(pid)), text)
            text = re.sub(rf"\b{pid}\b", number, text)
        return re.sub(r"^(pid \d+) on \S+,", r"\1 on web3,", text, flags=re.MULTILINE)

    def block(self, text):
        """The text of a block, made again."""
        out = []
        for part in re.split(r"\n(?= *\$ )", text):
            command, *before = part.split("\n")
            words = command.lstrip()
            printed = self.run(words[2:]).rstrip("\n")
            lines = [(command[:-len(words)] + line).rstrip() for line in printed.split("\n") if printed]
            out += [command, *as_before(before, lines)]
        return "\n".join(out)


def as_before(before, lines):
    """The lines without those for which "..." stood before; all, if others have changed, too."""
    out, at, any_lines = [], 0, False
    for line in before:
        if line.strip() == "...":
            any_lines = True
            out.append(line)
            continue
        while any_lines and at < len(lines) and shape(lines[at]) != shape(line):
            at += 1
        if at == len(lines) or shape(lines[at]) != shape(line):
            return lines
        out.append(lines[at])
        at, any_lines = at + 1, False
    return out if at == len(lines) or any_lines else lines


def shape(text):
    """Without numbers, their units and widths."""
    text = re.sub(r"\b[0-9a-f]{16}\b", "#", text)
    return re.sub(r" +", " ", re.sub(r"\d[\d.,:TZ-]*( [KMG]iB| bytes| m?s\b)?", "#", text))


def main():
    arguments = sys.argv[1:]
    check = "--check" in arguments
    build, *documents = [os.path.abspath(one) for one in arguments if one != "--check"]
    differ = False
    with tempfile.TemporaryDirectory() as scratch:
        samples = Samples(build, scratch)
        try:
            for document in documents:
                with open(document, encoding="utf-8") as file:
                    before = file.read()
                escapes = document.endswith(".html")
                pattern = re.compile(BLOCKS[".html" if escapes else ""], re.DOTALL)
                found = 0

                def made(match):
                    nonlocal found
                    found += 1
                    begin, text, end = match.groups()
                    text = samples.block(html.unescape(re.sub(r"</?[biu]>", "", text)) if escapes else text)
                    return begin + (html.escape(text, quote=False) if escapes else text) + end

                after = pattern.sub(made, before)
                print(f"{document}: {found} samples")
                if not check and after != before:
                    with open(document, "w", encoding="utf-8") as file:
                        file.write(after)
                old, new = (shape(re.sub(r"</?[biu]>", "", text)).split("\n") for text in (before, after))
                if check and (old != new or not found):
                    differ = True
                    print("\n".join(difflib.unified_diff(old, new, document, "as it is now", lineterm="", n=1)))
        finally:
            samples.run("memlog detach 5012")  # removes its ledger
            samples.running.process.terminate()
            samples.running.process.communicate()
    return 1 if differ else 0


sys.exit(main())
