"""compare.py: what a run under the library has done differently from two plain runs.

What differs between the two plain runs is not compared. Of a stream or a list of names the
strictest of four ways is taken in which the two plain runs agree; the traced run must agree with
them in the same way.
"""
import collections
import re

# Lines that the library and memlog themselves write on standard error, as documented.
SAID = re.compile(r"(mtrace|memlog): |the last state of a process is not saved|no names in ")
OURS = re.compile(r"mtrace|memlog|ledger", re.IGNORECASE)
# Decimal, or hexadecimal with a digit and six places at least.
NUMBER = re.compile(r"0x[0-9a-fA-F]+|\b(?=[a-f]*[0-9])[0-9a-f]{6,}\b|[0-9]+(?:[.,][0-9]+)*")
BLANKS = re.compile(r"\s+")


def masked(lines):
    """Without numbers, and without the blanks that fill them up to a width."""
    return [BLANKS.sub(" ", NUMBER.sub("N", line)) for line in lines]


def ways(lines):
    """The lines as they are; without numbers; without order; only which lines there are."""
    yield "the same", lines
    without = masked(lines)
    yield "the same but for numbers", without
    yield "the same but for numbers and order", sorted(without)


def first_difference(expected, found):
    for number, (a, b) in enumerate(zip(expected, found), 1):
        if a != b:
            return f"line {number}: {b[:120]!r} instead of {a[:120]!r}"
    if len(found) < len(expected):
        return f"{len(expected) - len(found)} lines are missing, the first {expected[len(found)][:120]!r}"
    return f"{len(found) - len(expected)} lines more, the first {found[len(expected)][:120]!r}"


def lines_differ(a, b, traced):
    """How the lines TRACED differ from what both A and B are; None if they do not."""
    for (_, of_a), (_, of_b), (_, of_traced) in zip(ways(a), ways(b), ways(traced)):
        if of_a == of_b:
            return None if of_traced == of_a else first_difference(of_a, of_traced)
    both = collections.Counter(masked(a)) & collections.Counter(masked(b))
    missing = [line for line in both if line not in set(masked(traced))]
    if missing:
        return f"lacks a line that both plain runs have: {missing[0][:120]!r}"
    alien = [line for line in traced if OURS.search(line)
             and not any(OURS.search(other) for other in a + b)]
    return f"a line of ours: {alien[0][:200]!r}" if alien else None


def split_said(lines):
    """(lines of the host, lines of ours)"""
    return ([line for line in lines if not SAID.match(line)],
            [line for line in lines if SAID.match(line)])


def files_differ(a, b, traced):
    differences = []
    names = lines_differ(sorted(a), sorted(b), sorted(traced))
    if names:
        differences.append(f"names of files: {names}")
    for name in sorted(set(a) & set(b) & set(traced)):
        if a[name] == b[name] and traced[name] != a[name]:
            differences.append(f"file {name}: {traced[name]} instead of {a[name]}")
    return differences[:3]


def left_more(a, b, traced):
    """Leftovers of the traced run beyond what a plain run leaves."""
    more = []
    for place, paths in traced.items():
        ours = [path for path in paths if OURS.search(path) and not path.endswith(".memlog")]
        if ours:
            more.append(f"{len(ours)} in {place}: {ours[0]}")
            continue
        most = max(len(a.get(place, [])), len(b.get(place, [])))
        others = [path for path in paths if not path.endswith(".memlog")]
        if len(others) > most and place != "/tmp/home":
            plain = set(masked(a.get(place, []) + b.get(place, [])))
            new = [path for path in others if masked([path])[0] not in plain]
            if new:
                more.append(f"{len(others) - most} more in {place}: {new[0]}")
    return more


def slower_than_allowed(phase, plain_seconds, seconds):
    """A limit that a busy machine keeps to: what is this slow is hurt."""
    factor, more = (5, 10) if phase in ("reports", "attached", "signals") else (3, 5)
    return seconds > factor * plain_seconds + more


def differences(plain, traced):
    """{aspect: what is different} of one traced run; plain: two or more runs of the host."""
    a, b = plain[0], plain[1]
    found = {}
    if "ends" in traced:
        found["end"] = traced["ends"]
    if traced["faults"]:
        found["fault"] = "; ".join(traced["faults"])
    for key in ("status", "client"):
        if traced.get(key) not in [run.get(key) for run in plain] and "ends" not in traced:
            found[key] = f"{key} {traced.get(key)} instead of {a.get(key)}"
    for name in ("host.out", "host.err", "client.out", "client.err"):
        streams = [run["streams"].get(name, []) for run in (a, b, traced)]
        if name == "host.err":
            streams = [split_said(stream)[0] for stream in streams]
        difference = lines_differ(*streams)
        if difference and "ends" not in traced:
            found[name] = f"{name}: {difference}"
    if "ends" not in traced:
        files = files_differ(a["files"], b["files"], traced["files"])
        if files:
            found["files"] = "; ".join(files)
        slowest = max(run["seconds"] for run in plain)
        if slower_than_allowed(traced["phase"], slowest, traced.get("seconds", 0)):
            found["slow"] = f"took {traced['seconds']:.1f} s instead of {slowest:.1f}"
    return found


def leftovers(plain, traced):
    """Lines about processes and files that only the traced run leaves behind."""
    a, b = plain[0], plain[1]
    found = []
    expected = collections.Counter(a["left"]) | collections.Counter(b["left"])
    processes = collections.Counter(traced["left"]) - expected
    if processes:
        found.append(f"processes: {dict(processes)}")
    return found + left_more(a["litter"], b["litter"], traced["litter"])
