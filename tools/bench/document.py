#!/usr/bin/python3 -B
"""document.py: writes the measured parts of doc/performance.md, which has what a user reads, and of
doc/internals/measurements.md, which has everything, and the pictures, from results.json.

Keeps what is written by hand outside the two marked lines of each.
"""
import argparse
import json
import os

import figures
import goals
import measured
import svg


def markdown(head, rows):
    columns = ["---" if name == "what it does" else "---:" for name in head[1:]]
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] + columns)]
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
        text += "\n**A quick run with little work: do not compare its figures.**\n"
    return text


def about_machine_in_short(results):
    machine = results["machine"]
    return (f"Measured on {results['date']}: {machine['cpu']}, {machine['cores']} cores, Linux "
            f"{machine['kernel']}, {machine['system']}; medians of {results['rounds']} rounds.\n")


def about_contenders(results):
    rows = [[c["name"], c["version"], c["how"]] for c in results["contenders"]]
    return ("| run under | version | |\n| --- | --- | --- |\n" +
            "".join("| " + " | ".join(row) + " |\n" for row in rows))


def bar_groups(results, kind, value, key):
    return [(entry["name"], {name: value(entry, name, key) for name in figures.TOOLS
                             if name in entry["contenders"]})
            for entry in results["programs"] if entry["kind"] == kind and entry["times"] == 1]


def pictures(results):
    """Name -> (SVG text, words for who cannot see it)."""
    made = {}
    if groups := bar_groups(results, "real", figures.ratio, "cpu"):
        made["programs"] = (svg.bars("Processor time of whole programs, base = 1", groups,
                                     figures.TOOLS, "ratio", least=1.0),
                            "Processor time of whole programs as a multiple of base")
    if groups := bar_groups(results, "own", figures.added, "ns"):
        made["pairs"] = (svg.bars("Added to a pair of malloc and free", groups, figures.TOOLS,
                                  "ns", clip=1000.0),
                         "Nanoseconds added to a pair of malloc and free")
    return made


# Title, words below it, table, picture. For users:
SHORT_SECTIONS = [
    ("Whole programs", "Processor time: seconds without tracing, and as a multiple of that.",
     figures.short_program_rows, "programs"),
    ("One pair of malloc and free", "Nanoseconds of processor time without tracing, and what is added.",
     figures.short_pair_rows, None),
    ("Memory", "Peak of the resident set, and what is written to files, in MB.",
     figures.short_space_rows, None),
    ("Start and end", "One run of a program that does next to nothing. `names`: the report at exit "
     "names functions.", figures.short_start_rows, None)]

# For developers:
SECTIONS = [
    ("Goals", "The goals, and what was measured.", goals.rows, None),
    ("Whole programs", "Seconds of processor time (user and system) without tracing, and the ratios "
     "with it; the same of wall time.", figures.real_rows, "programs"),
    ("Our own program", "Nanoseconds of processor time for one malloc+free pair (growth: one realloc) "
     "without tracing, and what is added; seconds of wall time of the whole process, and the ratios.",
     figures.own_rows, "pairs"),
    ("Sampled", "With MTRACE_SAMPLE=512K: seconds of processor time of the whole process without "
     "tracing, the ratios with it, and the 95 % interval of the median of the sampled ratio.",
     figures.sampled_rows, None),
    ("Start and end", "One run of a program that does next to nothing.", figures.start_rows, None),
    ("Memory", "Peak of the resident set, and what is written to files, in MB.",
     figures.space_rows, None),
    ("Memory of each block and stack", "What each adds to the peak of the process, the report at exit "
     "included. LeakSanitizer has its own allocator; heaptrack keeps blocks in its file.",
     figures.memory_rows, None),
    ("Instructions", "Counted by callgrind, the same number each time. `make check` fails above the "
     "limit, which is in `tools/bench/instructions.txt`.", figures.instruction_rows, None),
    ("Parts", "Micro-benchmarks (`tools/bench/micro`), with walks of 10 frames unless the name says "
     "otherwise. `Calls` is the cost of the benchmark's own calls that lead to one of that many stacks.",
     figures.micro_rows, None)]


def not_measured(results):
    lines = [f"{e['name']}: {name} does not survive: {series['failed']}"
             for e in results["programs"] for name, series in e["contenders"].items()
             if "failed" in series]
    lines += [f"{s['name']}: skipped, {s['why']}" for s in results["skipped"]]
    return lines + results["missing"]


def table(results):
    """For a terminal."""
    parts = [f"{title}: {text}\n\n{figures.aligned(*rows)}"
             for title, text, make, _ in SECTIONS if (rows := make(results))[1]]
    return "\n".join(parts + [line + "\n" for line in not_measured(results)])


def sections(results, chosen, made, folder):
    text = ""
    for title, words, make, picture in chosen:
        rows = make(results)
        if rows[1]:
            text += f"### {title}\n\n{words}\n\n"
            if picture in made:
                text += f"![{made[picture][1]}]({folder}/{picture}.svg)\n\n"
            text += markdown(*rows) + "\n"
    return text


def programs(results):
    text = "### The programs\n\n| name | what it does |\n| --- | --- |\n"
    text += "".join(f"| {e['name']} | {e['about']} |\n" for e in results["programs"]) + "\n"
    if lines := not_measured(results):
        text += "### Not measured\n\n" + "".join(f"- {line}\n" for line in lines) + "\n"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", default="build/bench/results.json")
    parser.add_argument("--document", default="doc/performance.md", help="the page for users")
    parser.add_argument("--details", default="doc/internals/measurements.md",
                        help="the page for developers")
    args = parser.parse_args()
    with open(args.results, encoding="utf-8") as file:
        results = json.load(file)
    made = pictures(results)
    folder = os.path.splitext(args.document)[0]
    os.makedirs(folder, exist_ok=True)
    for name, (text, _) in made.items():
        with open(os.path.join(folder, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(text)
    measured.replace(args.document, about_machine_in_short(results) + "\n" +
                     sections(results, SHORT_SECTIONS, made, os.path.basename(folder)))
    measured.replace(args.details, about_machine(results) + "\n" + about_contenders(results) + "\n" +
                     sections(results, SECTIONS, made,
                              os.path.relpath(folder, os.path.dirname(args.details))) +
                     programs(results))


if __name__ == "__main__":
    main()
