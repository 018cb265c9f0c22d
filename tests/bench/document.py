#!/usr/bin/python3 -B
"""document.py: writes the measured part of doc/performance.md, and its pictures, from results.json.

What stands outside the two marked lines is written by hand and stays.
"""
import argparse
import json
import os
import re
import sys

import figures
import goals
import svg

BEGIN = "<!-- measured: written by `make performance`; what stands from here to the end mark goes -->"
END = "<!-- measured: end -->"


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def about_machine(results):
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    text = (f"Measured on {results['date']}: {machine['cpu']}, {machine['cores']} cores, "
            f"{machine['memory'] / 1e9:.0f} GB, Linux {machine['kernel']}, {machine['system']}, "
            f"{machine['libc']}; load {machine['load']:.1f} at the start; "
            f"{results['rounds']} rounds.\n\n{versions}.\n")
    if results["quick"]:
        text += "\n**A quick run: small pieces of work, so the figures say little.**\n"
    return text


def about_contenders(results):
    rows = [[c["name"], c["version"], c["how"]] for c in results["contenders"]]
    return ("| run under | version | |\n| --- | --- | --- |\n" +
            "".join("| " + " | ".join(row) + " |\n" for row in rows))


def bar_groups(results, kind, value):
    groups = []
    for entry in results["programs"]:
        if entry["kind"] != kind or entry["times"] > 1:
            continue
        each = {}
        for name in figures.TOOLS:
            if name in entry["contenders"]:
                each[name] = value(entry, name)
        groups.append((entry["name"], each))
    return groups


def series_by(results, prefix):
    """Added nanoseconds of own programs named "PREFIX NUMBER", by tool."""
    series = {}
    for entry in results["programs"]:
        match = re.fullmatch(prefix + r" ([\d,]+)", entry["name"])
        if not match:
            continue
        for name in figures.TOOLS:
            value = figures.added(entry, name, "ns")
            if value is not None:
                series.setdefault(name, []).append((int(match[1].replace(",", "")), value))
    return series


def micro_series(results, names):
    """names: {benchmark: (what it is called, the divisor of its nanoseconds)}"""
    series = {}
    for time in results["micro"]:
        match = re.fullmatch(r"(\w+)/\w+:(\d+)(/threads:1)?", time["name"])
        if match and match[1] in names:
            called, divisor = names[match[1]]
            series.setdefault(called, []).append((int(match[2]), time["ns"] / divisor))
    return series


def pictures(results):
    """Name -> (SVG text, words for who cannot see it)."""
    made = {}
    groups = bar_groups(results, "real", lambda e, n: figures.ratio(e, n, "cpu"))
    if groups:
        made["programs"] = (svg.bars("Processor time of whole programs, base = 1", groups,
                                     figures.TOOLS, "ratio", least=1.0),
                            "Processor time of whole programs as a multiple of base")
    groups = bar_groups(results, "own", lambda e, n: figures.added(e, n, "ns"))
    if groups:
        made["pairs"] = (svg.bars("Added to a pair of malloc and free", groups, figures.TOOLS,
                                  "ns", clip=1000.0),
                         "Nanoseconds added to a pair of malloc and free")
    panels = [("By distinct stacks", "stacks", "ns added to a pair", True, False,
               series_by(results, "stacks")),
              ("By live blocks", "blocks", "ns added to a pair", True, False,
               series_by(results, "live"))]
    panels = [panel for panel in panels if panel[-1]]
    if panels:
        made["growth"] = (svg.lines("What grows", panels),
                          "Nanoseconds added to a pair by number of stacks and of live blocks")
    panels = [("Walk", "frames", "ns", False, False,
               micro_series(results, {"Walk": ("walk", 1), "WalkSameAgain": ("same again", 1)})),
              ("Find a known stack", "stacks", "ns", True, False,
               micro_series(results, {"InternKnown": ("stack table", 1),
                                      "InternKnownFlatHashMapAndMutex":
                                          ("flat_hash_map, mutex", 1)})),
              ("Report", "stacks", "ms", True, True,
               micro_series(results, {"SnapshotOf": ("read", 1e6),
                                      "SnapshotAndWrite": ("read and write", 1e6)}))]
    panels = [panel for panel in panels if panel[-1]]
    if panels:
        made["parts"] = (svg.lines("Parts", panels), "Times of walk, look-up and report")
    return made


def sections(results, made, folder):
    def picture(name):
        return f"![{made[name][1]}]({folder}/{name}.svg)\n\n" if name in made else ""

    def section(title, text, rows, before=""):
        if not rows[1]:
            return ""
        return f"### {title}\n\n{text}\n\n{before}{markdown(*rows)}\n"

    seconds = ("Seconds of processor time (user and system) without tracing, and the ratios with "
               "it; the same of wall time.")
    own = ("Nanoseconds of processor time for one malloc+free pair (growth: one realloc) without "
           "tracing, and what is added; seconds of wall time of the whole process, and the ratios.")
    text = about_machine(results) + "\n" + about_contenders(results) + "\n"
    text += section("Goals", "What is aimed at, held against this measurement.",
                    goals.rows(results))
    text += section("Whole programs", seconds, figures.real_rows(results), picture("programs"))
    text += section("Our own program", own, figures.own_rows(results),
                    picture("pairs") + picture("growth"))
    text += section("Sampled", "With MTRACE_SAMPLE=512K: seconds of processor time of the whole "
                    "process without tracing, the ratios with it, and the 95 % interval of the "
                    "median of the sampled ratio.",
                    figures.sampled_rows(results))
    text += section("Start and end", "One run of a program that does next to nothing.",
                    figures.start_rows(results))
    text += section("Memory", "The peak of what is resident, and what was written to files, MB.",
                    figures.space_rows(results))
    text += section("What memory grows by", "What the peak of the process grows by, the report at exit included. "
                    "LeakSanitizer brings an allocator of its own, heaptrack keeps blocks in its "
                    "file.", figures.memory_rows(results))
    text += section("Instructions", "Counted by callgrind, which repeats; `make check` holds them "
                    "to the limit in `tests/bench/instructions.txt`.",
                    figures.instruction_rows(results))
    text += section("Parts", "Micro-benchmarks (`tests/bench/micro`): walks of 10 frames where "
                    "nothing else is said; `Calls` is the cost of the benchmark's own calls to get "
                    "to one of so many stacks.", figures.micro_rows(results), picture("parts"))
    about = [[e["name"], e["about"]] for e in results["programs"]]
    text += ("### The programs\n\n| name | what it does |\n| --- | --- |\n" +
             "".join(f"| {name} | {words} |\n" for name, words in about) + "\n")
    failed = [f"- {e['name']}: {name} does not survive ({series['failed']})\n"
              for e in results["programs"] for name, series in e["contenders"].items()
              if "failed" in series]
    failed += [f"- {s['name']}: skipped, {s['why']}\n" for s in results["skipped"]]
    failed += [f"- {line}\n" for line in results["missing"]]
    if failed:
        text += "### Not measured\n\n" + "".join(failed) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True)
    parser.add_argument("--document", required=True)
    args = parser.parse_args()
    with open(args.results, encoding="utf-8") as file:
        results = json.load(file)
    with open(args.document, encoding="utf-8") as file:
        document = file.read()
    before, begin, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        print(f"{args.document}: has no lines {BEGIN} and {END}", file=sys.stderr)
        return 1
    made = pictures(results)
    folder = os.path.splitext(args.document)[0]
    os.makedirs(folder, exist_ok=True)
    for name, (text, _) in made.items():
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(text)
    measured = sections(results, made, os.path.basename(folder))
    with open(args.document, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{measured}{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
