"""From measurements to figures: medians of ratios and differences within a round, and tables."""
import math
import re
from statistics import median

SAMPLED = "libmtrace, sampled"
TOOLS = ["libmtrace", "LeakSanitizer", "heaptrack"]


def of(entry, name):
    """What was measured of a program under a contender; None: it was not, or did not survive."""
    series = entry["contenders"].get(name)
    return None if series is None or "failed" in series else series


def pairs(entry, name, key):
    """(base, contender) of each round."""
    series = of(entry, name)
    if series is None:
        return []
    base = of(entry, series["against"]) or of(entry, "base")
    return list(zip(base[key], series[key])) if base else []


def ratios(entry, name, key):
    return [there / here for here, there in pairs(entry, name, key) if here > 0]


def ratio(entry, name, key):
    both = ratios(entry, name, key)
    return median(both) if both else None


def interval(values):
    """The narrowest two values, equally far from the ends, between which the median of what they
    were drawn from lies in 95 of 100 cases, whatever its distribution: how many of n values are
    below that median is binomial. None: fewer than six values tell no such two."""
    count = len(values)
    below = 0  # values to leave out at each end
    tail = 0   # of 2^n cases, those with at most `below` values on one side
    while 40 * (tail + math.comb(count, below)) <= 2 ** count:
        tail += math.comb(count, below)
        below += 1
    if below == 0:
        return None
    ordered = sorted(values)
    return ordered[below - 1], ordered[count - below]


def added(entry, name, key):
    both = [there - here for here, there in pairs(entry, name, key)]
    return median(both) if both else None


def times_added(entry, name, other, key):
    """What one contender adds, as a multiple of what another adds in the same rounds."""
    both = [(there - here) / (less - here) for (here, there), (_, less)
            in zip(pairs(entry, name, key), pairs(entry, other, key)) if less > here]
    return median(both) if both else None


def middle(entry, name, key):
    series = of(entry, name)
    return median(series[key]) if series and key in series else None


def number(value, digits):
    return "-" if value is None else f"{value:,.{digits}f}"


def signed(value):
    return "-" if value is None else f"{value:+,.0f}"


def megabytes(value):
    """Bytes with three digits or so."""
    if value is None:
        return "-"
    mega = value / 1e6
    return f"{mega:,.0f}" if mega >= 100 else f"{mega:.1f}" if mega >= 1 else f"{mega:.2f}"


def of_tool(entry, name, text):
    series = entry["contenders"].get(name)
    if series is None:
        return "-"
    return "fails" if "failed" in series else text(name)


def short(entry):
    """A line for the progress."""
    key = "ns" if entry["kind"] == "own" else "cpu"
    parts = []
    for name in entry["contenders"]:
        if name.startswith("base"):
            continue
        value = (number(added(entry, name, "ns"), 0) + " ns" if key == "ns"
                 else number(ratio(entry, name, "cpu"), 2))
        parts.append(f"{name} {of_tool(entry, name, lambda _, v=value: v)}")
    return ", ".join(parts)


def micro_times(benchmarks):
    """Google Benchmark's results: name, nanoseconds, rate; the median where it was repeated."""
    repeated = {b["run_name"] for b in benchmarks if b.get("aggregate_name") == "median"}
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    times = []
    for b in benchmarks:
        if b.get("error_occurred"):
            continue
        if (b["run_name"] in repeated) != (b.get("aggregate_name") == "median"):
            continue
        # Processor time, except where threads work side by side.
        key = "real_time" if b.get("threads", 1) > 1 else "cpu_time"
        nanoseconds = b[key] * units[b["time_unit"]]
        name = re.sub(r"/(real_time|repeats:1|iterations:\d+)", "", b["run_name"])
        times.append({"name": name,
                      "ns": nanoseconds, "bytes_per_second": b.get("bytes_per_second"),
                      "items_per_second": b.get("items_per_second")})
    return times


# ---- Tables: a heading and rows of cells, for text and for Markdown.

SHORT = {"libmtrace": "libmtrace", "LeakSanitizer": "LSan", "heaptrack": "heaptrack"}


def tool_cells(entry, text):
    return [of_tool(entry, name, text) for name in TOOLS]


def heads(before, sign=""):
    return [before] + [sign + SHORT[name] for name in TOOLS]


def real_rows(results):
    rows = []
    for entry in results["programs"]:
        if entry["kind"] != "real" or entry["times"] > 1:
            continue
        row = [entry["name"]]
        for key in ("cpu", "wall"):
            row.append(number(middle(entry, "base", key), 3))
            row += tool_cells(entry, lambda n, k=key: number(ratio(entry, n, k), 2))
        rows.append(row)
    return ["program"] + heads("cpu s", "x ") + heads("wall s", "x "), rows


def own_rows(results):
    rows = [[entry["name"], number(middle(entry, "base", "ns"), 1)] +
            tool_cells(entry, lambda n: signed(added(entry, n, "ns"))) +
            [number(middle(entry, "base", "wall"), 3)] +
            tool_cells(entry, lambda n: number(ratio(entry, n, "wall"), 2))
            for entry in results["programs"] if entry["kind"] == "own"]
    return ["program"] + heads("ns", "+ ") + heads("wall s", "x "), rows


def sampled_rows(results):
    head = ["program", "cpu s", "x exact", "x sampled", "95 % of its median", "rounds"]
    rows = []
    for entry in results["programs"]:
        if SAMPLED not in entry["contenders"]:
            continue
        found = ratios(entry, SAMPLED, "cpu")
        both = interval(found)
        rows.append([entry["name"], number(middle(entry, "base", "cpu"), 3)] +
                    [of_tool(entry, name, lambda n: number(ratio(entry, n, "cpu"), 3))
                     for name in ("libmtrace", SAMPLED)] +
                    [f"{both[0]:.3f} to {both[1]:.3f}" if both else "-", str(len(found))])
    return head, rows


def space_rows(results):
    rows = [[entry["name"], megabytes(middle(entry, "base", "rss"))] +
            tool_cells(entry, lambda n: megabytes(middle(entry, n, "rss"))) +
            [of_tool(entry, name, lambda n: megabytes(middle(entry, n, "written")))
             for name in ("libmtrace", "heaptrack")] for entry in results["programs"]]
    return ["program"] + heads("peak MB") + ["written by libmtrace", "by heaptrack"], rows


def start_rows(results):
    head = ["run under", "wall ms", "added", "cpu ms", "MB"]
    rows = []
    for entry in results["programs"]:
        if entry["times"] == 1:
            continue
        for name in entry["contenders"]:
            title = f"{entry['name']}: {name}"
            if of(entry, name) is None:
                rows.append([title, "fails", "", "", ""])
                continue
            rows.append([title, number(middle(entry, name, "wall") * 1e3, 2),
                         "" if name == "base" else number(added(entry, name, "wall") * 1e3, 2),
                         number(middle(entry, name, "cpu") * 1e3, 2),
                         megabytes(middle(entry, name, "rss"))])
    return head, rows


def time_text(nanoseconds):
    if nanoseconds >= 1e6:
        return f"{nanoseconds / 1e6:,.2f} ms"
    return f"{nanoseconds:,.1f} ns"


def micro_rows(results):
    head = ["micro-benchmark", "time", "rate"]
    rows = []
    for time in results["micro"]:
        rate = ""
        if time["bytes_per_second"]:
            rate = f"{time['bytes_per_second'] / 1e6:,.0f} MB/s"
        elif time["items_per_second"]:
            rate = f"{time['items_per_second'] / 1e6:,.1f} million/s"
        rows.append([time["name"], time_text(time["ns"]), rate])
    return head, rows


def instruction_rows(results):
    head = ["instructions a pair", "base", "libmtrace", "added", "limit"]
    rows = [[r["command"], number(r["base"], 0), number(r["libmtrace"], 0),
             number(r["libmtrace"] - r["base"], 0), number(r["limit"], 0)]
            for r in results["instructions"]]
    return head, rows


def memory_rows(results):
    """Bytes a block and a stack, from what the peak of the process grew by."""
    entries = {entry["name"]: entry for entry in results["programs"]}
    head = [""] + TOOLS
    rows = []
    for text, large, small, count in (
            ("bytes a live block (2,000,000)", "live 2,000,000", "live 1,000", 1_999_000),
            ("bytes a stack of 10 frames (100,000)", "stacks 100,000", "stacks 100", 99_900)):
        if large not in entries or small not in entries:
            continue
        row = [text]
        for name in TOOLS:
            more = [added(entries[which], name, "rss") for which in (large, small)]
            row.append("-" if None in more else number((more[0] - more[1]) / count, 0))
        rows.append(row)
    if "true" in entries:
        row = ["KiB of /bin/true"]
        for name in TOOLS:
            more = added(entries["true"], name, "rss")
            row.append("-" if more is None else number(more / 1024, 0))
        rows.append(row)
    return head, rows


# ---- The same in short, for users.

PAIRS = ("nested 12", "nested 12, 8 threads", "stacks 100", "stacks 1,000", "stacks 10,000",
         "stacks 100,000", "live 2,000,000")
MOMENTS = ("base", "libmtrace", "libmtrace, names")


def whole_programs(results):
    """Without those that only repeat others with deeper stacks."""
    return [e for e in results["programs"]
            if e["kind"] == "real" and e["times"] == 1 and "depth" not in e["name"]]


def short_program_rows(results):
    names = ["libmtrace", SAMPLED] + TOOLS[1:]
    rows = [[entry["name"], entry["about"], number(middle(entry, "base", "cpu"), 2)] +
            [of_tool(entry, name, lambda n: number(ratio(entry, n, "cpu"), 2)) for name in names]
            for entry in whole_programs(results)]
    return ["program", "what it does", "s", "x libmtrace", "x sampled", "x LSan", "x heaptrack"], rows


def short_pair_rows(results):
    rows = [[entry["name"], entry["about"], number(middle(entry, "base", "ns"), 0)] +
            tool_cells(entry, lambda n: signed(added(entry, n, "ns")))
            for entry in results["programs"] if entry["name"] in PAIRS]
    return ["program", "what it does"] + heads("ns", "+ "), rows


def short_space_rows(results):
    kept = {entry["name"] for entry in whole_programs(results)}
    head, rows = space_rows(results)
    return head, [row for row in rows if row[0] in kept]


def short_start_rows(results):
    head, rows = start_rows(results)
    return head[:3], [row[:3] for row in rows if row[0].split(": ")[1] in MOMENTS]


def aligned(head, rows):
    widths = [max(len(row[i]) for row in [head] + rows) for i in range(len(head))]

    def line(row):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        return "  ".join(cells).rstrip() + "\n"

    return "".join(line(row) for row in [head] + rows)
