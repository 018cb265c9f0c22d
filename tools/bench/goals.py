"""What tracing should cost, held against what was measured."""
import figures
from programs import DEEP

PROGRAMS = ("python3", "clang++", "perl", "sqlite3", "git", "redis", "node")


def entry_of(results, name):
    return next((e for e in results["programs"] if e["name"] == name), None)


def of(results, name, figure, *arguments):
    """figures.FIGURE of the program; None where it was not measured."""
    entry = entry_of(results, name)
    return entry and figure(entry, *arguments)


def added(results, name, tool="libmtrace", key="ns"):
    return of(results, name, figures.added, tool, key)


def ratio(results, name, tool):
    return of(results, name, figures.ratio, tool, "cpu")


def pair_goals(results):
    name = "nested 12"
    ours = added(results, name)
    yield ("ns added to a pair, 12 deep, one thread", "no more than LeakSanitizer", ours,
           added(results, name, "LeakSanitizer"), 0)
    heaptrack = added(results, name, "heaptrack")
    yield ("the same", "1/8 of heaptrack", ours, heaptrack and heaptrack / 8, 0)
    for arguments, limit in (("pairs 1 12", 420), ("mix 1 100 1000", 750)):
        for r in results["instructions"]:
            if r["arguments"] == arguments:
                yield (f"instructions added to a pair, {arguments}", str(limit),
                       r["libmtrace"] - r["base"], limit, 0)
    for name, limit in (("nested 12, 2 threads", 36), ("nested 12, 8 threads", 45),
                        ("stacks 100", 40), ("stacks 1,000", 40), ("stacks 10,000", 40),
                        ("stacks 100,000", 150), ("live 2,000,000", 150)):
        yield f"ns added to a pair, {name}", str(limit), added(results, name), limit, 0
    here, there = added(results, "nested 40"), added(results, "nested 40, depth 40")
    yield ("added at depth 40, times depth 10", "4, as the frames", here and there and there / here,
           4, 1)


def program_goals(results):
    for name in ("paths numbers", "paths covers"):
        lsan = ratio(results, name, "LeakSanitizer")
        for tool in ("libmtrace", "libmtrace with frame pointers"):
            yield (f"{name}, {tool}, times base", "no more than LeakSanitizer",
                   ratio(results, name, tool), lsan, 2)
    for name, limit in (("python3", 1.45), ("perl", 1.40), ("sqlite3", 1.10), ("git", 1.07),
                        ("clang++", 1.12), ("redis", 1.35), ("node", 1.06)):
        yield f"{name}, times base", str(limit), ratio(results, name, "libmtrace"), limit, 2
    for name in DEEP:
        more = of(results, f"{name}, depth 32", figures.times_added, "libmtrace",
                  "libmtrace, 10 frames", "cpu")
        yield f"{name}, added at depth 32, times depth 10", "1.1", more, 1.1, 2
    for name in PROGRAMS:
        heaptrack = added(results, name, "heaptrack", "cpu")
        ours = added(results, name, key="cpu")
        if heaptrack and ours is not None:
            yield (f"{name}, ms added", "1/5 of heaptrack", ours * 1e3, heaptrack * 1e3 / 5, 0)


def sampling_goals(results):
    for name, limit in ([(name, 1.02) for name in PROGRAMS] + [("churn, 1 thread", 1.08)]):
        yield (f"{name}, sampled, times base", str(limit),
               ratio(results, name, figures.SAMPLED), limit, 3)
    for name in PROGRAMS:
        entry = entry_of(results, name)
        both = entry and figures.interval(figures.ratios(entry, figures.SAMPLED, "cpu"))
        if both:
            yield (f"{name}, sampled, upper end of the median's 95 % interval", "1.03", both[1],
                   1.03, 3)


def space_goals(results):
    for text, cells in ((row[0], row[1]) for row in figures.memory_rows(results)[1]):
        limit = 24 if "block" in text else 320 if "stack" in text else 1024
        if cells != "-":
            yield text, str(limit), float(cells.replace(",", "")), limit, 0


def moment_goals(results):
    more = added(results, "true", "libmtrace, no report", "wall")
    yield "/bin/true, ms added without the report", "1", more and more * 1e3, 1, 2
    more = added(results, "ls", "libmtrace, names", "wall")
    yield ("/bin/ls, ms added with names in the report", "30", more and more * 1e3, 30, 1)
    for time in results["micro"]:
        if time["name"] == "SnapshotAndWrite/stacks:100000":
            yield "a report of 100,000 stacks, ms", "100", time["ns"] / 1e6, 100, 0


def rows(results):
    head = ["what", "goal", "measured", "limit", ""]
    found = []
    for make in (pair_goals, program_goals, sampling_goals, space_goals, moment_goals):
        for what, goal, measured, limit, digits in make(results):
            if measured is None or limit is None:
                continue
            found.append([what, goal, figures.number(measured, digits),
                          figures.number(limit, digits), "met" if measured <= limit else "missed"])
    return head, found
