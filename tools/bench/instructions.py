#!/usr/bin/python3 -B
"""instructions.py BUILD: instructions of a malloc+free pair, without and with libmtrace.so.

Counted by callgrind in a fixed environment, as the difference of two lengths, so that starting and
ending do not count. Fails when libmtrace.so adds more than tools/bench/instructions.txt allows.
"""
import os
import re
import subprocess
import sys
import tempfile

SHORT, LONG = 10_000, 30_000
LIMITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.txt")


def limits():
    """Limit, options of the library, arguments of churn, or news and its."""
    with open(LIMITS, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [(int(words[0]), [word for word in words[1:] if "=" in word],
             [word for word in words[1:] if "=" not in word]) for words in lines]


def allowance(build):
    """Per cent: the limits are those of a library built by GCC; clang's has 2 % more."""
    with open(os.path.join(build, "libmtrace.so"), "rb") as file:
        return 105 if b"clang version" in file.read() else 100


def program_of(arguments):
    """The program, and which of the arguments are its."""
    return ("news", arguments[1:]) if arguments[0] == "news" else ("churn", arguments)


def collected(build, options, arguments, pairs, traced):
    program, arguments = program_of(arguments)
    with tempfile.TemporaryDirectory() as out:
        # The same number of bytes with and without, since they lie on the stack.
        environment = {"PATH": "/usr/bin:/bin", "TZ": "UTC"}
        environment["LD_PRELOAD" if traced else "XX_PRELOAD"] = os.path.join(build, "libmtrace.so")
        environment.update(MTRACE_OUTPUT=out, MTRACE_RESOLVER="none", MTRACE_DEPTH="10",
                           MTRACE_FOLLOW=program)
        environment.update(option.split("=") for option in options)
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
             os.path.join(build, "tools/bench", program)] + arguments + [f"{pairs:06}"],
            env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        reports = os.listdir(out)
    match = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or match is None:
        raise RuntimeError("callgrind: " + run.stderr[-500:])
    if len(reports) != traced:
        raise RuntimeError(f"{len(reports)} reports instead of {int(traced)}")
    return int(match.group(1))


def count_each(build):
    """For each limit: a dictionary of arguments, limit, base, libmtrace (instructions a pair)."""
    build = os.path.abspath(build)

    def a_pair(options, arguments, traced):
        # A sample that falls into one of the runs is seldom, and into both of two more so.
        rounds = 2 if "MTRACE_SAMPLE" in " ".join(options) else 1
        count = [min(collected(build, options, arguments, pairs, traced) for _ in range(rounds))
                 for pairs in (SHORT, LONG)]
        return (count[1] - count[0]) / (LONG - SHORT)

    results = []
    bases = {}  # without the library no option matters
    for limit, options, arguments in limits():
        program, own = program_of(arguments)
        command = " ".join([program] + own)
        if command not in bases:
            bases[command] = a_pair([], arguments, False)
        results.append({"arguments": " ".join(arguments + options),
                        "command": " ".join([command] + options), "base": bases[command],
                        "libmtrace": a_pair(options, arguments, True),
                        "limit": limit * allowance(build) // 100})
    return results


def text_of(result):
    return (f"{result['command']}: base {result['base']:.1f}, "
            f"libmtrace {result['libmtrace']:.1f}, "
            f"added {result['libmtrace'] - result['base']:.1f}, limit {result['limit']}")


def main():
    results = count_each(sys.argv[1])
    for result in results:
        print(text_of(result))
    return 1 if any(r["libmtrace"] - r["base"] > r["limit"] for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
