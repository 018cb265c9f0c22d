#!/usr/bin/python3 -B
"""run.py: runs the hosts of hosts.py plain and under the library, and says which were hurt.

Each host runs twice plain, then preloaded, under memlog report, under memlog attach, report and
detach, and under memlog run --every. Each run is phase.py in namespaces of its own. What fails
becomes a line of the host's result; logs and memlogs of a run that failed stay in --output.
Status 1 if a host was hurt, a memlog is wrong or something was left behind.
"""
import argparse
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback

import compare
import hosts
import phase as one_run

HERE = os.path.dirname(os.path.abspath(__file__))
PHASES = ("preloaded", "reports", "attached", "run")
QUICK_PHASES = PHASES[:3]
MORE_PHASES = tuple(name for name in one_run.RUNS if name not in PHASES) + (
    "signals", "killed")  # by --phases
COPIED = ("libmtrace.so", "memlog", "client.py", "phase.py", "processes.py")


def installed_version(package):
    """The package's version, or None."""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package],
                          capture_output=True, text=True)
    state, _, version = done.stdout.partition(" ")
    return version if done.returncode == 0 and state == "installed" else None


def namespaces_missing():
    """Why hosts cannot run here, or None."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--net", "--ipc", "--fork",
                           "--mount-proc", "--kill-child", "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"no namespaces: {done.stderr.strip()}"


def kept_ledgers(result):
    """Whether memlog run says that it keeps the ledgers of processes that a signal ended."""
    return any("memlog recover" in line for line in result["streams"].get("host.err", []))


class Trial:
    """One host."""

    def __init__(self, host, arguments):
        self.host = host
        self.arguments = arguments
        self.directory = os.path.join(arguments.output, host.name)
        self.count = 0
        self.n = host.quick if arguments.quick else host.n

    def spec(self, phase, plain):
        """What phase.py is told; @N@ stands for how much work there is."""
        sized = lambda value: (value.replace("@N@", str(self.n)) if isinstance(value, str) else
                               [sized(one) for one in value] if isinstance(value, list) else
                               {key: sized(one) for key, one in value.items()}
                               if isinstance(value, dict) else value)
        self.count += 1
        root = os.path.join(self.directory, f"{self.count}-{phase}")
        return {"host": sized(dataclasses.asdict(self.host)), "phase": phase, "root": root,
                "traced": phase != "plain", "seed": self.arguments.seed + self.count,
                "seconds": self.host.seconds, "result": os.path.join(root, "result.json"),
                "plain_seconds": max((run["seconds"] for run in plain), default=0),
                "expected_left": plain[0]["left"] if plain else [],
                # Five digits in each run, and another one in each.
                "first_pid": 10000 + (self.arguments.seed + self.count) * 1231 % 15000,
                # Seconds for what outlives the host, and from the request to end to the kill.
                "grace": 3 if self.arguments.quick else 8,
                "patience": 5 if self.arguments.quick else 20}

    def prepare(self, root):
        tools = os.path.join(root, "tmp", "mtrace")
        os.makedirs(tools)
        for name in COPIED:
            os.link(os.path.join(self.arguments.output, "tools", name), os.path.join(tools, name))

    def run(self, phase, plain):
        """Runs one phase; its result, in which "ends" says why it did not come to its end."""
        spec = self.spec(phase, plain)
        root = spec["root"]
        empty = {"phase": phase, "faults": [], "left": [], "files": {}, "litter": {},
                 "memlog": {}, "memlog_faults": []}
        try:
            self.prepare(root)
            with open(os.path.join(root, "spec.json"), "w", encoding="utf-8") as file:
                json.dump(spec, file, indent=1)
            with open(os.path.join(root, "runner.log"), "wb") as log:
                child = subprocess.Popen(
                    ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--mount-proc",
                     "--kill-child", "/usr/bin/python3", "-B",
                     os.path.join(self.arguments.output, "tools", "phase.py"),
                     os.path.join(root, "spec.json")],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                    start_new_session=True)
                try:
                    child.wait(spec["seconds"] + 150)
                finally:
                    child.kill()  # and with it, by --kill-child, all of the namespace
                    child.wait()
            with open(spec["result"], encoding="utf-8") as file:
                result = json.load(file)
        except subprocess.TimeoutExpired:
            result = {**empty, "ends": "time-out of the runner"}
        except (OSError, ValueError, subprocess.SubprocessError):
            result = {**empty, "ends": f"the runner failed: {traceback.format_exc()[-800:]}"}
        result["root"] = root
        result["streams"] = self.streams(root)
        if self.host.ignored:
            result["files"] = {path: what for path, what in result["files"].items()
                               if not re.match(self.host.ignored, path)}
        return result

    def streams(self, root):
        found = {}
        for name in ("host.out", "host.err", "client.out", "client.err"):
            try:
                with open(os.path.join(root, "tmp", "log", name), "rb") as file:
                    text = file.read(32 << 20).decode("utf-8", "surrogateescape")
                    found[name] = text.splitlines()
            except OSError:
                found[name] = []
        return found

    def check_memlogs(self, result):
        """Adds what the memlogs of a run say to its result."""
        result.update(reports=0, entries=0, wrong=[], notes=[])
        tmp = os.path.join(result["root"], "tmp")
        for place in filter(lambda place: os.path.isdir(os.path.join(tmp, place)),
                            ("out", "tmp", "ask")):
            subprocess.run(["find", os.path.join(tmp, place), "-name", "*.memlog.zst", "-exec",
                            "zstd", "-dq", "--rm", "{}", "+"], check=True)
            checker = os.path.join(self.arguments.build, "tests/check_memlogs")
            done = subprocess.run([checker, os.path.join(tmp, place)], capture_output=True,
                                  text=True, errors="replace")
            for word, _, text in (line.partition(" ") for line in done.stdout.splitlines()):
                if word == "report":
                    result["reports"] += 1
                    result["entries"] += int(text)
                elif word == "note" and text not in result["notes"]:
                    result["notes"].append(text)
                elif word == "wrong":
                    result["wrong"].append(text)
            if done.returncode:
                result["wrong"].append(f"the checker failed: {done.stderr[-300:]}")
        known = (".memlog", ".timeline", ".events")
        if os.path.isdir(os.path.join(tmp, "out")):
            result["litter_out"] = sorted(name for name in os.listdir(os.path.join(tmp, "out"))
                                          if not name.endswith(known))

    def judge(self, plain, result):
        """Adds "hurt", "wrong" and "left": lists of lines; all empty if all is well."""
        self.check_memlogs(result)
        found = compare.differences(plain, result)
        if result["phase"] == "killed":  # it did not come to its end
            found = {aspect: line for aspect, line in found.items() if aspect == "end"}
        if found and set(found) - {"slow", "end", "fault"}:
            # Perhaps the plain runs are not always the same either.
            again = self.run("plain", plain)
            other = compare.differences(plain, again)
            for aspect in set(found) & set(other):
                del found[aspect]
            self.remove(again)
        result["hurt"] = list(found.values())
        result["behind"] = compare.leftovers(plain, result)
        if result["phase"] == "killed":
            result["behind"] = [line for line in result["behind"] if " more in " not in line]
        if result.get("litter_out"):
            result["behind"].append(f"{len(result['litter_out'])} beside the memlogs: "
                                    f"{result['litter_out'][0]}")
        if result["phase"] in one_run.RUNS and kept_ledgers(result):
            result["behind"] = [line for line in result["behind"] if ".ledger" not in line]
        result["said"] = compare.split_said(result["streams"].get("host.err", []))[1][:3]

    def remove(self, result):
        shutil.rmtree(result["root"], ignore_errors=True)

    def whole(self):
        """Runs all phases. The row: state is ok, hurt, not installed or not run."""
        row = {"name": self.host.name, "kind": self.host.kind, "phases": {}, "reasons": []}
        versions = {package: installed_version(package) for package in self.host.packages}
        row["version"] = " ".join(list(versions.items())[0]) if all(versions.values()) else ""
        absent = [package for package, version in versions.items() if version is None]
        if absent:
            return {**row, "state": "not installed", "reasons": [", ".join(absent)]}
        shutil.rmtree(self.directory, ignore_errors=True)
        plain = []
        for _ in range(2):
            plain.append(self.run("plain", plain))
            if "ends" in plain[-1] or plain[-1]["faults"] or \
                    plain[-1].get("status") != self.host.status or \
                    plain[-1].get("client", "exit 0") != "exit 0":
                reason = plain[-1].get("ends") or "; ".join(plain[-1]["faults"]) or \
                    f"{plain[-1].get('status')}, client {plain[-1].get('client')}"
                return {**row, "state": "not run", "reasons": [f"plain: {reason}"]}
        row["plain"] = [run["seconds"] for run in plain]
        for phase in self.arguments.phases:
            result = self.run(phase, plain)
            self.judge(plain, result)
            if any(line.startswith("took ") for line in result["hurt"]) and \
                    len(result["hurt"]) == 1:  # perhaps it was the machine: both once more
                self.remove(result)
                plain.append(self.run("plain", plain))
                result = self.run(phase, plain)
                self.judge(plain, result)
            bad = [f"{phase}: {line}" for key in ("hurt", "wrong", "behind", "memlog_faults")
                   for line in result[key][:4]]
            row["reasons"] += bad
            row["phases"][phase] = {key: result.get(key) for key in (
                "seconds", "processor", "status", "reports", "entries", "wrong", "hurt", "behind",
                "memlog", "memlog_faults", "memory", "notes", "said", "states")}
            if not bad and not self.arguments.keep:
                self.remove(result)
        row["state"] = "hurt" if row["reasons"] else "ok"
        if not self.arguments.keep:
            for run in plain if row["state"] == "ok" else plain[1:]:
                self.remove(run)
            if row["state"] == "ok":
                shutil.rmtree(self.directory, ignore_errors=True)
        return row


def copy_tools(arguments):
    """Copies of what every run uses, so that a build or an edit meanwhile changes nothing."""
    tools = os.path.join(arguments.output, "tools")
    shutil.rmtree(tools, ignore_errors=True)
    os.makedirs(tools)
    for name in COPIED:
        directory = HERE if name.endswith(".py") else arguments.build
        shutil.copy2(os.path.join(directory, name), tools)


def line_of(row):
    words = [f"{row['name']:<18} {row['state']:<14}"]
    if "plain" in row:
        words.append(f"plain {max(row['plain']):.1f} s")
        for phase, result in row["phases"].items():
            words.append(f"{phase} {result.get('seconds') or 0:.1f} s "
                         f"({result['reports']} memlogs)")
    return "  ".join(words)


def arguments_of(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", help="hosts; none: all")
    parser.add_argument("--build", default="build", help="where libmtrace.so and memlog are")
    parser.add_argument("--output", help="for logs and results (BUILD/hosts)")
    parser.add_argument("--minutes", type=float, default=90, help="hosts begin before (90)")
    parser.add_argument("--phases", help="of " + ", ".join(PHASES + MORE_PHASES),
                        type=lambda text: [word for word in text.split(",") if word])
    parser.add_argument("--quick", action="store_true", help="little work; without names: the "
                        "hosts that make check runs")
    parser.add_argument("--list", action="store_true", help="only names the hosts")
    parser.add_argument("--keep", action="store_true", help="keep the logs of good runs, too")
    parser.add_argument("--seed", type=int, default=1, help="for the times between reports")
    parser.add_argument("--table", help="take the hosts from another module")
    arguments = parser.parse_args(argv)
    if arguments.phases is None:
        arguments.phases = QUICK_PHASES if arguments.quick else PHASES
    arguments.build = os.path.abspath(arguments.build)
    arguments.output = os.path.abspath(arguments.output or os.path.join(arguments.build, "hosts"))
    return arguments


def chosen(table, arguments):
    by_name = {host.name: host for host in table}
    unknown = [name for name in arguments.names if name not in by_name]
    if unknown:
        sys.exit(f"run.py: no host {unknown[0]}; --list names them")
    if arguments.names:
        return [by_name[name] for name in arguments.names]
    return [host for host in table if host.quick or arguments.table or not arguments.quick]


def main(argv):
    arguments = arguments_of(argv)
    table = hosts.HOSTS
    if arguments.table:
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments.table)))
        name = os.path.basename(arguments.table).removesuffix(".py")
        table = __import__(name).HOSTS
    selected = chosen(table, arguments)
    if arguments.list:
        for host in selected:
            print(f"{host.name:<18} {host.kind:<12} {' '.join(host.packages)}")
        return 0
    missing = namespaces_missing()
    if missing:
        sys.exit(f"run.py: {missing}; hosts run as root, each in namespaces of its own")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    os.nice(5)
    results = os.path.join(arguments.output, "results")
    os.makedirs(results, exist_ok=True)
    copy_tools(arguments)
    end = time.monotonic() + 60 * arguments.minutes
    counts = {}
    for host in selected:
        trial = Trial(host, arguments)
        row = {"name": host.name, "kind": host.kind, "phases": {}, "version": "", "state": "not run"}
        try:
            row = trial.whole() if time.monotonic() < end else {
                **row, "reasons": [f"{arguments.minutes:g} minutes were over"]}
        except Exception:  # one host's failure is its row
            row["reasons"] = ["the runner failed: " + traceback.format_exc()[-800:]]
        row["date"] = time.strftime("%Y-%m-%d", time.gmtime())
        row["load"] = os.getloadavg()[0]
        with open(os.path.join(results, f"{host.name}.json"), "w", encoding="utf-8") as file:
            json.dump(row, file, indent=1)
        counts[row["state"]] = counts.get(row["state"], 0) + 1
        print(line_of(row), flush=True)
        for reason in row["reasons"]:
            print(f"    {reason}", flush=True)
        if row["state"] == "hurt":
            print(f"    logs: {trial.directory}", flush=True)
    print("hosts: " + ", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    if arguments.quick and counts.get("not run"):
        return 1
    return 1 if counts.get("hurt") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
