#!/usr/bin/python3 -B
"""bench.py: what tracing costs.

Whole programs run under nothing, libmtrace, heaptrack and LeakSanitizer in turn, several rounds;
what counts is the median of the ratios within a round. Then micro-benchmarks, then instructions of
a malloc+free pair. Progress goes to stderr, the table to stdout; results.json and table.txt go to
the output directory, for document.py and other readers.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time

import contenders as tools
import document
import figures
import instructions
import programs as workloads

PATIENCE = 600  # seconds; only a hang reaches it


def progress(text):
    print(text, file=sys.stderr, flush=True)


class Failed(Exception):
    """A program did not do its work."""


class Runner:
    """Runs one program under contenders, in a directory of its own."""

    def __init__(self, build, program, scratch):
        self.build = build
        self.program = program
        self.scratch = scratch
        self.output = None  # of the first run under nothing

    def run(self, contender):
        """One measurement: a dictionary of wall, cpu, rss, written and, of own programs, ns."""
        program = self.program
        out = tempfile.mkdtemp(prefix="out-", dir=self.scratch)
        result = os.path.join(self.scratch, "result")
        words = {"scratch": self.scratch, "out": out}
        for own in ("churn", "paths"):
            words[own] = os.path.join(self.build, "tools/bench",
                                      own + (".fp" if contender.frame_pointers else ""))

        def fill(text):
            # Scripts have braces of their own.
            for name, value in words.items():
                text = text.replace("{" + name + "}", value)
            return text

        variables = [f"{name}={fill(value)}" for name, value in program.environment.items()]
        variables += contender.variables(out, program.depth)
        command = [fill(word) for word in program.command]
        measure = [os.path.join(self.build, "tools/bench/measure"), result, str(program.times)]
        environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.scratch,
                       "LC_ALL": "C.UTF-8", "TMPDIR": self.scratch}
        with open(self.scratch + "/stdout", "wb") as stdout, \
                open(self.scratch + "/stderr", "wb") as stderr:
            process = subprocess.Popen(measure + variables + command, cwd=self.scratch,
                                       env=environment, stdin=subprocess.DEVNULL, stdout=stdout,
                                       stderr=stderr, start_new_session=True)
            try:
                load_wall = self.load(process, fill, environment) if program.server else None
                process.wait(PATIENCE)
            except BaseException:
                os.killpg(process.pid, 9)
                process.wait()
                raise
        sample = self.read(result)
        if load_wall is not None:
            sample["wall"] = load_wall
        sample.update(self.files(out))
        shutil.rmtree(out)
        return sample

    def files(self, out):
        """What to keep of what was written."""
        written = sum(entry.stat().st_size for entry in os.scandir(out))
        return {"written": written / self.program.times}

    def load(self, process, fill, environment):
        """Loads a server and ends it; seconds that the load took."""
        server = self.program.server

        def client(words, **more):
            return subprocess.run([fill(word) for word in words], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  timeout=PATIENCE, **more)

        while client(server.ready).returncode != 0:
            if process.poll() is not None:
                return 0.0
            time.sleep(0.01)
        begin = time.monotonic()
        client(server.load, check=True)
        wall = time.monotonic() - begin
        client(server.stop)
        return wall

    def read(self, result):
        with open(result, encoding="ascii") as file:
            status, wall, user, system, rss = file.read().split()
        os.unlink(result)
        with open(self.scratch + "/stdout", "rb") as file:
            output = file.read()
        if int(status) != 0:
            with open(self.scratch + "/stderr", "rb") as file:
                last = (file.read().decode("utf-8", "replace").strip().splitlines() or [""])[-1]
            code = int(status)
            how = f"signal {code & 127}" if code & 127 else f"exit {code >> 8}"
            raise Failed(f"{how} {last[:100]}".strip())
        if self.program.stable:
            if self.output is None:
                self.output = output
            elif output != self.output:
                raise Failed("prints something else than without it")
        times = self.program.times
        sample = {"wall": float(wall) / times, "cpu": (float(user) + float(system)) / times,
                  "rss": int(rss) * 1024}
        if self.program.kind == workloads.OWN:
            sample["ns"] = float(output)
        return sample


def takes_part(name, program, number, args):
    """Whether a contender runs in this round. What sampling costs a whole program is too little
    for a few rounds to show: those with nothing else follow."""
    if number < args.rounds:
        return True
    return program.kind == workloads.REAL and name in ("base", figures.SAMPLED)


def measure_program(program, chosen, args):
    entry = {"name": program.name, "about": program.about, "kind": program.kind,
             "depth": program.depth, "times": program.times, "unit": program.unit,
             "contenders": {}}
    failed = {}
    with tempfile.TemporaryDirectory(prefix="mtrace-bench-") as scratch:
        if program.prepare:
            program.prepare(scratch)
        runner = Runner(args.build, program, scratch)
        names = [name for name in program.contenders if name in chosen]
        if not args.quick:
            runner.run(chosen["base"])
        rounds = args.rounds
        if figures.SAMPLED in names and program.kind == workloads.REAL:
            rounds = max(rounds, args.sampled_rounds)
        for number in range(rounds):
            # Nobody is always first, or always behind the same one.
            for name in names[number % len(names):] + names[:number % len(names)]:
                if name in failed or not takes_part(name, program, number, args):
                    continue
                try:
                    sample = runner.run(chosen[name])
                except Failed as error:
                    if name == "base":
                        raise
                    failed[name] = str(error)
                    progress(f"  {program.name}: {name} does not survive: {error}")
                    continue
                series = entry["contenders"].setdefault(
                    name, {"against": chosen[name].against})
                for key, value in sample.items():
                    series.setdefault(key, []).append(value)
    for name, why in failed.items():
        entry["contenders"][name] = {"failed": why, "against": chosen[name].against}
    return entry


def measure_programs(args, chosen, results):
    pattern = re.compile(args.only)
    for program in workloads.all_programs(args.quick):
        if not pattern.search(program.name):
            continue
        missing = program.missing()
        if missing:
            why = f"{', '.join(missing)} not installed"
            progress(f"{program.name}: skipped, {why}")
            results["skipped"].append({"name": program.name, "why": why})
            continue
        begin = time.monotonic()
        try:
            entry = measure_program(program, chosen, args)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            why = f"does not run here: {error}"
            progress(f"{program.name}: skipped, {why}")
            results["skipped"].append({"name": program.name, "why": why})
            continue
        results["programs"].append(entry)
        progress(f"{program.name}: {figures.short(entry)} ({time.monotonic() - begin:.0f} s)")


def measure_micro(args, results):
    binary = os.path.join(args.build, "tools/bench/micro")
    progress("micro-benchmarks")
    file = os.path.join(args.output, "micro.json")
    words = [binary, f"--benchmark_out={file}", "--benchmark_out_format=json",
             f"--benchmark_filter={args.micro}"]
    if args.quick:
        words += ["--benchmark_min_time=0.01"]
    else:
        words += ["--benchmark_min_time=0.1", "--benchmark_repetitions=3"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(file, encoding="utf-8") as text:
        results["micro"] = figures.micro_times(json.load(text)["benchmarks"])


def measure_instructions(args, results):
    if shutil.which("valgrind") is None:
        results["skipped"].append({"name": "instructions", "why": "valgrind not installed"})
        return progress("instructions: skipped, valgrind not installed")
    progress("instructions")
    results["instructions"] = instructions.count_each(args.build)
    return None


def machine():
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/etc/os-release", encoding="utf-8") as file:
        system = re.search(r'PRETTY_NAME="(.*)"', file.read())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cores": os.cpu_count(), "memory": memory,
            "kernel": platform.release().split("-")[0], "libc": " ".join(platform.libc_ver()),
            "system": system.group(1) if system else "unknown",
            "load": os.getloadavg()[0]}


def versions():
    """Of the programs that are measured, and of the compiler."""
    found = {}
    for package in ("g++", "clang", "python3", "perl", "sqlite3", "git", "redis-server", "nodejs",
                    "libc6-dbg", "valgrind", "libbenchmark-dev"):
        version = tools.package_version(package)
        if version != "unknown":
            found[package] = version
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="where libmtrace.so is")
    parser.add_argument("--output", default="build/bench", help="directory for results.json")
    parser.add_argument("--rounds", type=int, help="of each program; 5, quick: 1")
    parser.add_argument("--sampled-rounds", type=int, metavar="N",
                        help="of each whole program under sampling; 20, quick: as --rounds")
    parser.add_argument("--only", default="", metavar="REGEX",
                        help="programs whose name matches; then nothing else is measured")
    parser.add_argument("--micro", default="", metavar="REGEX",
                        help="micro-benchmarks whose name matches; then nothing else is measured")
    parser.add_argument("--instructions", action="store_true", help="count only instructions")
    parser.add_argument("--quick", action="store_true",
                        help="small pieces of work, to see that all runs; the figures say little")
    parser.add_argument("--list", action="store_true", help="print the names of the programs")
    args = parser.parse_args()
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.sampled_rounds = args.sampled_rounds or (args.rounds if args.quick else 20)
    args.build = os.path.abspath(args.build)
    return args


def main():
    args = arguments()
    if args.list:
        for program in workloads.all_programs(args.quick):
            print(f"{program.name:24} {program.about}")
        return 0
    os.makedirs(args.output, exist_ok=True)
    chosen, missing = tools.find(args.build)
    for line in missing:
        progress(line)
    results = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
               "machine": machine(), "versions": versions(), "rounds": args.rounds,
               "quick": args.quick, "missing": missing, "skipped": [], "programs": [],
               "micro": [], "instructions": [],
               "contenders": [{"name": c.name, "version": c.version, "how": c.how}
                              for c in chosen.values()]}
    everything = not (args.only or args.micro or args.instructions)
    if everything or args.only:
        measure_programs(args, chosen, results)
    if everything or args.micro:
        measure_micro(args, results)
    if everything or args.instructions:
        measure_instructions(args, results)
    with open(os.path.join(args.output, "results.json"), "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    table = document.table(results)
    with open(os.path.join(args.output, "table.txt"), "w", encoding="utf-8") as file:
        file.write(table)
    print(table, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
