#!/usr/bin/python3 -B
"""memlogs.py: checks the memlogs of a directory by the rules of doc/memlog-format.md.

It shares no code with memlog and none with the other tests. Each file: complete, its entries in
order, their sum its delta, each entry's allocations less its frees its change, totals allocated
less freed what is live. Each series of a process: no number missing, and what was inherited plus
all deltas up to a report is what that report says is live.
"""
import collections
import os
import re
import sys

NAME = re.compile(r"(?P<series>.+)-(?P<seq>\d+)\.memlog")
ENTRY = re.compile(r"(@[A-Za-z0-9-]+\t)?([+-]\d+)((?:\t[a-z-]+=[^\t]*)+)")
TAIL_END = re.compile(r"\t\^ tail=([0-9a-f]{16})")
FRAME = re.compile(r"\t(\.\.\.|([^\t]+\t){0,2}\((0x[0-9a-f]+|inlined|.+\+0x[0-9a-f]+)\)\??)")
META = re.compile(r"# ([a-z][a-z-]*): (.*)")
AMOUNT = re.compile(r"([+-]?\d+) bytes ([+-]?\d+) blocks")
REQUIRED = ("program", "pid", "seq", "trigger", "started", "taken", "delta", "live", "lost")
REPEATED = ("note", "kind", "module", "region")


class Wrong(Exception):
    """What is wrong with a file or a series."""


def amount(text, key):
    match = AMOUNT.fullmatch(text or "")
    if not match:
        raise Wrong(f"{key} is {text!r}, which is no amount")
    return int(match[1]), int(match[2])


class Report:
    """One file. Raises Wrong when it breaks a rule that one file alone can break."""

    def __init__(self, path):
        self.path = path
        self.meta = {}
        self.notes = []
        self.sum = [0, 0]
        self.entries = 0
        self.last = None
        self.tails = set()  # that are listed
        self.ends = set()  # that something ends with
        with open(path, "rb") as file:
            data = file.read()
        if not data.startswith(b"# memlog 2\n"):
            raise Wrong("does not begin with '# memlog 2'")
        if not data.endswith(b"\n# end\n"):
            raise Wrong("does not end with '# end': it is not complete")
        try:
            lines = data.decode("utf-8").split("\n")[1:-2]
        except UnicodeDecodeError as error:
            raise Wrong(f"is not UTF-8: {error}") from None
        for number, line in enumerate(lines, 2):
            try:
                self.read(line)
            except Wrong as wrong:
                raise Wrong(f"line {number}: {wrong}") from None
        for key in REQUIRED:
            if key not in self.meta:
                raise Wrong(f"has no '# {key}:'")
        if self.tails != self.ends:
            raise Wrong(f"tails that are missing or nobody's: {self.tails ^ self.ends}")
        self.seq = int(self.meta["seq"])
        self.delta = amount(self.meta["delta"], "delta")
        self.live = amount(self.meta["live"], "live")
        if "sampled" in self.meta:
            return
        if tuple(self.sum) != self.delta:
            raise Wrong(f"entries sum to {tuple(self.sum)}, but delta is {self.delta}")
        if "allocated" in self.meta:
            allocated = amount(self.meta["allocated"], "allocated")
            freed = amount(self.meta["freed"], "freed")
            difference = (allocated[0] - freed[0], allocated[1] - freed[1])
            if difference != self.live:
                raise Wrong(f"allocated less freed is {difference}, but live is {self.live}")

    def read(self, line):
        if match := TAIL_END.fullmatch(line):
            self.ends.add(match[1])
        elif line.startswith("\t"):
            if self.last is None or not FRAME.fullmatch(line):
                raise Wrong(f"no frame: {line!r}")
        elif line.startswith("# "):
            match = META.fullmatch(line)
            if not match:
                raise Wrong(f"no meta line: {line!r}")
            key, value = match.groups()
            if key == "tail":
                if value in self.tails:
                    raise Wrong(f"a second tail {value}")
                self.tails.add(value)
                return
            if key == "note":
                self.notes.append(value)
            elif key in self.meta and key not in REPEATED:
                raise Wrong(f"a second '# {key}:'")
            self.meta[key] = value
        else:
            self.entry(line)

    def entry(self, line):
        match = ENTRY.fullmatch(line)
        if not match:
            raise Wrong(f"neither entry, frame nor meta line: {line!r}")
        fields = dict(field.split("=", 1) for field in match[3][1:].split("\t"))
        change = int(match[2])
        order = (-change, fields.get("stack", ""))
        if match[1]:
            self.last = self.last or ()
            return
        self.entries += 1
        if self.last and order < self.last:
            raise Wrong("entries are out of order")
        self.last = order
        blocks = int(fields["blocks"])
        self.sum[0] += change
        self.sum[1] += blocks
        if "sampled" in self.meta:
            return
        of = lambda key: int(fields.get(key, 0))
        if of("allocs") - of("frees") != blocks or of("allocated") - of("freed") != change:
            raise Wrong(f"allocations less frees are not the change: {line!r}")
        if of("live") < 0:
            raise Wrong(f"less than nothing is live: {line!r}")


class Findings:
    """What a directory holds: counts, and what is wrong as lines of text."""

    def __init__(self):
        self.reports = 0
        self.series = 0
        self.entries = 0
        self.wrong = []
        self.litter = []
        self.notes = collections.Counter()


def check_series(name, reports, findings):
    bytes_, blocks = 0, 0
    if "inherited" in reports[0].meta:
        bytes_, blocks = amount(reports[0].meta["inherited"], "inherited")
    expected = 1
    for report in reports:
        if report.seq != expected:
            findings.wrong.append(f"{name}: report {expected} is missing")
            return
        expected += 1
        if "sampled" in report.meta:
            return
        bytes_ += report.delta[0]
        blocks += report.delta[1]
        if (bytes_, blocks) != report.live:
            findings.wrong.append(f"{name}-{report.seq}: inherited plus all deltas is "
                                  f"{(bytes_, blocks)}, but live is {report.live}")
            return


def check(directory):
    """Findings of a directory of memlogs; what is none, and no timeline or event log, is litter."""
    findings = Findings()
    series = collections.defaultdict(list)
    broken = set()
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if name.endswith((".timeline", ".events")) and os.path.isfile(path):
            continue
        if not name.endswith(".memlog") or not os.path.isfile(path):
            findings.litter.append(name)
            continue
        findings.reports += 1
        match = NAME.fullmatch(name)
        try:
            report = Report(path)
            if match and int(match["seq"]) != report.seq:
                raise Wrong(f"says that it is number {report.seq}")
        except (Wrong, OSError, ValueError, KeyError) as error:
            findings.wrong.append(f"{name}: {error}")
            broken.add(match["series"] if match else name)
            continue
        findings.entries += report.entries
        findings.notes.update(report.notes)
        if match:
            series[match["series"]].append(report)
    findings.series = len(series)
    for name, reports in sorted(series.items()):
        if name not in broken:
            check_series(name, sorted(reports, key=lambda report: report.seq), findings)
    return findings


def main():
    failed = False
    for directory in sys.argv[1:]:
        findings = check(directory)
        print(f"{directory}: {findings.reports} reports in {findings.series} series, "
              f"{findings.entries} entries, {len(findings.wrong)} wrong")
        for line in findings.wrong:
            print(f"  {line}")
        for name in findings.litter:
            print(f"  left behind: {name}")
        failed = failed or bool(findings.wrong or findings.litter)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
