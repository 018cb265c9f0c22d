"""phase.py: one run of one host, as the first process of a PID namespace of its own.

run.py starts it under unshare(1): mounts, processes, network and IPC are its own, so that whatever
the host leaves behind is seen, and all of it ends with this process. It starts the host, its
client and the memlog commands that the phase asks for, waits for them within the limits, and
writes one JSON object. It has one thread and waits by sigtimedwait(2).
"""
import collections
import fcntl
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import traceback

import processes

HOST = "/tmp/host"            # the host's working directory
OUT = "/tmp/out"              # its memlogs
TOOLS = "/tmp/mtrace"         # copies of libmtrace.so, memlog and client.py
MEMLOG = f"{TOOLS}/memlog"
LIBRARY = f"{TOOLS}/libmtrace.so"
LEDGERS = "/tmp/ledgers"
CLIENT = "MTRACE_HOSTS_CLIENT"  # variable that marks what is no part of the host
PLACES = ("/tmp", "/tmp/tmp", "/tmp/run", "/tmp/home", "/dev/shm", "/run", "/var/tmp")
OWN = ("host", "out", "mtrace", "tmp", "run", "home", "log", "ask", "vartmp", "ledgers")

# Options of memlog run and variables of the library, by phase.
EVERY = ["--every", "150ms"]
RUNS = {"run": (EVERY, {}),
        "events": ([*EVERY, "--events"], {}),
        "mmap": (EVERY, {"MTRACE_MMAP": "1"}),
        "sampled": ([*EVERY, "--sample", "512K"], {}),
        "unreachable": (["--unreachable"], {})}
PRELOADED = ("preloaded", "reports", "signals", "killed")
SIGNALLED = ("signals", "killed")
TRIGGER = signal.SIGRTMIN + 20  # of these runs: SIGUSR1 has a meaning to some hosts
SHOWN = 20                    # memlogs that memlog show prints after a run
INTERVAL = (0.05, 0.2)        # seconds between two memlog commands
MEMLOG_SECONDS = 45           # one command may take


class Ends(Exception):
    """The phase cannot go on; the text says why."""


def mount_all(root):
    """Makes the host's world: paths are the same in every phase."""
    for path in OWN:
        os.makedirs(f"{root}/tmp/{path}", exist_ok=True)
    os.chmod(f"{root}/tmp", 0o1777)
    for path in ("out", "tmp", "log", "vartmp", "ledgers"):
        os.chmod(f"{root}/tmp/{path}", 0o1777)
    os.chmod(f"{root}/tmp/run", 0o700)
    commands = [["--bind", f"{root}/tmp", "/tmp"], ["--bind", "/tmp/vartmp", "/var/tmp"],
                ["-t", "tmpfs", "-o", "size=1g,mode=1777", "tmpfs", "/dev/shm"],
                ["-t", "tmpfs", "-o", "size=64m,mode=0755", "tmpfs", "/run"]]
    for arguments in commands:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
        if done.returncode:
            raise Ends(f"mount {' '.join(arguments)}: {done.stderr.strip()}")
    os.makedirs("/run/lock", 0o1777, exist_ok=True)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh22x", b"lo", 0x1)  # IFF_UP
        fcntl.ioctl(sock, 0x8914, request)            # SIOCSIFFLAGS


def other_pids(start):
    """Process ids from START on: else they were the same in both plain runs, and compared."""
    try:
        with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
            file.write(str(start))
    except OSError:  # a kernel without it: by some processes that end at once
        for _ in range(start % 211):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)


def say_status(status):
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return f"exit {os.WEXITSTATUS(status)}"


def limits():
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))


class Killed(Exception):
    """The host's processes were killed."""


class Phase:
    def __init__(self, spec):
        self.spec = spec
        self.host = spec["host"]
        self.kind = spec["phase"]
        self.random = random.Random(spec["seed"])
        self.ended = {}                # pid: (status, monotonic time, processor seconds)
        self.deadline = time.monotonic() + spec["seconds"]
        self.memory_checked = 0.0
        self.main = None
        self.kill_at = None            # monotonic time
        self.looked_at = {}            # pid: program
        self.ask = None                # the memlog command under way
        self.steps = []                # what the cycle under way still has to do
        self.next_ask = 0.0
        self.turn = 0
        self.verbs = {}                # of memlog: counts, reasons, the longest time
        self.faults = []               # of memlog
        self.memory = 0
        self.states = []               # what the processes were doing when it could not go on

    # ---- Processes

    def look(self):
        """Notes what each process is doing: for the log of a time-out."""
        for pid in processes.pids():
            text = lambda name: (processes.read(pid, name, 300) or b"").decode("utf-8", "replace")
            self.states.append(f"{pid} {self.name(pid)} {processes.state(pid)} "
                               f"wchan={text('wchan')} syscall={text('syscall').strip()} "
                               f"cmdline={text('cmdline')!r}")

    def environment(self, traced):
        user = self.host.get("user") or "root"
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/games", "HOME": "/tmp/home",
               "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": "/tmp/tmp",
               "USER": user, "LOGNAME": user, "SHELL": "/bin/sh", "XDG_RUNTIME_DIR": "/tmp/run"}
        env.update(self.host.get("env") or {})
        if traced:
            env["LD_PRELOAD"] = (LIBRARY + " " + env.get("LD_PRELOAD", "")).strip()
            env["MTRACE_OUTPUT"] = OUT
            if self.kind in SIGNALLED:
                env["MTRACE_SIGNAL"] = str(int(TRIGGER))
            if self.kind == "killed":
                env["MTRACE_LEDGER"] = LEDGERS + "/"
        return env

    def start(self, command, name, env, directory=HOST, user=None):
        """Starts COMMAND with its output in /tmp/log/NAME.out and .err."""
        with open(f"/tmp/log/{name}.out", "ab") as out, open(f"/tmp/log/{name}.err", "ab") as err:
            how = {}
            if user:
                how = {"user": user, "group": user if user != "nobody" else "nogroup",
                       "extra_groups": []}
            started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env=env, cwd=directory, start_new_session=True,
                                       preexec_fn=limits, **how)
        started.returncode = 0  # it is waited for here, not by subprocess
        return started.pid

    def start_beside(self, command, name, user=None):
        """Starts what is no part of the host."""
        if isinstance(command, str):
            command = ["/bin/sh", "-c", command]
        return self.start(command, name, {**self.environment(False), CLIENT: "1"}, user=user)

    def reap(self):
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended[pid] = (status, time.monotonic(), used.ru_utime + used.ru_stime)

    def step(self, seconds, asks=True):
        """Waits for a child to end, SECONDS at most; looks at the limits; asks memlog."""
        self.reap()
        if asks:
            self.asking()
            if self.next_ask and not self.ask:
                seconds = min(seconds, max(0.001, self.next_ask - time.monotonic()))
        signal.sigtimedwait([signal.SIGCHLD], seconds)
        self.reap()
        now = time.monotonic()
        if now > self.deadline:
            raise Ends("time-out")
        if self.kill_at and now > self.kill_at:
            self.kill_host()
        if now > self.memory_checked + 0.5:
            self.memory_checked = now
            self.memory = max(self.memory, processes.memory())
            if self.memory > self.host["memory"] << 20:
                raise Ends(f"more than {self.host['memory']} MiB of memory")

    def wait(self, pid, seconds=None, asks=True):
        """The status of PID, or None after SECONDS."""
        end = time.monotonic() + seconds if seconds else self.deadline + 1
        while pid not in self.ended:
            if time.monotonic() > end:
                return None
            self.step(0.1, asks)
        return self.ended[pid][0]

    def kill(self, pid, number=signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def kill_host(self):
        """Kills the host's processes and its client's, also those that they start meanwhile."""
        self.kill_at = None
        for _ in range(200):
            found = [pid for pid in processes.pids() if processes.program(pid) not in (None, MEMLOG)]
            if not found:
                raise Killed
            for pid in found:
                self.kill(pid)
            signal.sigtimedwait([signal.SIGCHLD], 0.01)
            self.reap()
        raise Ends("the host's processes cannot be killed")

    # ---- memlog

    def targets(self):
        """The host's processes, memlog and what belongs to the client left out."""
        found = []
        for pid in processes.pids():
            program = processes.program(pid)
            if not program or program == MEMLOG or pid in self.ended:
                continue
            if not processes.has_variable(pid, CLIENT):
                found.append(pid)
        return found

    def choose(self, most):
        found = self.targets()
        if not found:
            return []
        self.turn += 1
        start = self.turn * most % len(found)
        chosen = (found[start:] + found[:start])[:most]
        if self.main in found and self.main not in chosen and self.turn % 2:
            chosen[0] = self.main
        return [str(pid) for pid in chosen]

    def signal_some(self):
        """Sends the trigger to some processes that have the library's handler for it, and that ran
        the same program at the last look: one that executes another has no handler for a moment."""
        before, self.looked_at = self.looked_at, {pid: processes.program(pid) for pid in
                                                  self.targets()}
        for pid in map(int, self.choose(4)):
            if pid not in before or before[pid] != self.looked_at.get(pid):
                continue
            caught = re.search(rb"SigCgt:\s*([0-9a-f]+)", processes.read(pid, "status") or b"")
            if caught and int(caught[1], 16) >> (TRIGGER - 1) & 1 and \
                    b"libmtrace.so" in (processes.read(pid, "maps", 1 << 24) or b""):
                self.kill(pid, TRIGGER)

    def begin(self, verb, arguments, directory):
        """Starts a memlog command; what finish() needs."""
        log = "/tmp/log/memlog.err"
        before = os.path.getsize(log) if os.path.exists(log) else 0
        began = time.monotonic()
        pid = self.start([MEMLOG, verb, *arguments], "memlog", self.environment(False), directory)
        return verb, pid, began, before

    def finish(self, ask):
        """Waits for the command and takes up what it has come to; kills one that takes too long."""
        verb, pid, began, _ = ask
        left = began + MEMLOG_SECONDS - time.monotonic()
        if self.wait(pid, max(left, 0.01), asks=False) is None:
            self.faults.append(f"memlog {verb} took more than {MEMLOG_SECONDS} s")
            self.kill(pid)
            self.wait(pid, 5, asks=False)
        else:
            self.asked(ask)

    def read_all(self):
        """Reads what the run has left: the ledgers of killed processes, and some memlogs."""
        ledgers = sorted(f"{LEDGERS}/{name}" for name in os.listdir(LEDGERS)
                         if is_kept(f"{LEDGERS}/{name}"))
        for start in range(0, len(ledgers), 50):
            self.finish(self.begin("recover", ["--remove", *ledgers[start:start + 50]], OUT))
        reports = sorted(name for name in os.listdir(OUT) if name.endswith(".memlog"))
        for name in self.random.sample(reports, min(len(reports), SHOWN)):
            self.finish(self.begin("show", [name], OUT))

    def next_cycle(self):
        if self.kind == "reports":
            chosen = self.choose(4)
            return [("report", ["--timeout", "20", *chosen])] if chosen else []
        chosen = self.choose(3)
        if not chosen:
            return []
        return [("attach", ["-q", "-o", OUT, "--timeout", "5", *chosen]),
                ("report", ["--timeout", "20", *chosen]), ("detach", ["--timeout", "5", *chosen])]

    def asking(self):
        """Takes up what a memlog command has come to, and starts the next when it is time."""
        if self.kind in SIGNALLED and self.main and time.monotonic() > self.next_ask:
            self.signal_some()
            self.next_ask = time.monotonic() + self.random.uniform(*INTERVAL)
        if self.kind not in ("reports", "attached") or not self.main:
            return
        now = time.monotonic()
        if self.ask:
            _, pid, began, _ = self.ask
            if pid not in self.ended and now <= began + MEMLOG_SECONDS:
                return
            self.finish(self.ask)
            self.ask = None
            self.next_ask = now + self.random.uniform(*INTERVAL) * (1 if not self.steps else 0.3)
        if now < self.next_ask or self.main in self.ended:
            return
        if not self.steps:
            self.steps = self.next_cycle()
        if not self.steps:
            self.next_ask = now + 0.02
            return
        self.ask = self.begin(*self.steps.pop(0), "/tmp/ask")

    def asked(self, ask):
        verb, pid, began, before = ask
        status, ended, _ = self.ended[pid]
        counts = self.verbs.setdefault(verb, {"good": 0, "refused": 0, "longest": 0.0,
                                              "reasons": collections.Counter()})
        counts["longest"] = max(counts["longest"], round(ended - began, 3))
        with open("/tmp/log/memlog.err", "rb") as file:
            file.seek(before)
            said = file.read(100000).decode("utf-8", "replace")
        for line in said.splitlines():
            counts["reasons"][re.sub(r"0x[0-9a-f]+|\d+", "N", line)[:200]] += 1
        if say_status(status) == "exit 0":
            counts["good"] += 1
        elif say_status(status) == "exit 1" and said:
            counts["refused"] += 1
        else:
            self.faults.append(f"memlog {verb}: {say_status(status)}: {said[-300:]}")

    # ---- The run

    def is_ready(self):
        ready = self.host["ready"]
        if isinstance(ready, int):
            try:
                socket.create_connection(("127.0.0.1", ready), 1).close()
                return True
            except OSError:
                return False
        if ready.startswith("/") and " " not in ready:
            return os.path.exists(ready)
        status = self.wait(self.start_beside(ready, "ready", self.host.get("user")), 10, False)
        return status == 0

    def serve(self, result):
        """A server: load it when it is ready, then ask it to end."""
        end = time.monotonic() + self.host.get("start_seconds", 30)
        while not self.is_ready():
            if self.main in self.ended:
                raise Ends(f"the server ended with {say_status(self.ended[self.main][0])} "
                           "before it was ready")
            if time.monotonic() > end:
                raise Ends("the server was not ready in time")
            self.step(0.05)
        began = time.monotonic()
        client = self.start_beside(self.host["client"], "client", self.host.get("client_user"))
        status = self.wait(client)
        result["client"] = say_status(status)
        result["client_seconds"] = round(time.monotonic() - began, 3)
        if self.main in self.ended:
            return
        stop, patience = self.host["stop"], self.spec["patience"]
        if stop.isupper():
            os.kill(self.main, getattr(signal, "SIG" + stop))
        else:
            self.wait(self.start_beside(stop, "stop", self.host.get("user")), patience)
        if self.wait(self.main, patience) is None:
            result["faults"].append(f"did not end in {patience} s when it was asked to")
            self.kill(self.main)
            self.wait(self.main, 5)

    def leftovers(self, result):
        """Waits for what outlives the host, and says what does not end."""
        if self.ask:
            self.finish(self.ask)
        expected = collections.Counter(self.spec.get("expected_left", []))
        end = time.monotonic() + (self.spec["grace"] if self.spec["traced"] else 2)
        while True:
            self.step(0.05, asks=False)
            left = [pid for pid in processes.pids()
                    if pid not in self.ended and processes.state(pid) not in (None, "Z")]
            names = [self.name(pid) for pid in left]
            if not left or time.monotonic() > end or (
                    self.spec["traced"] and not collections.Counter(names) - expected):
                break
        result["left"] = names

    def name(self, pid):
        return os.path.basename(processes.program(pid) or "?")

    def end_all(self):
        """Ends, one by one, the processes of this namespace: all were started here."""
        for _ in range(20):
            left = [pid for pid in processes.pids() if processes.state(pid) not in (None, "Z")]
            if not left:
                return
            for pid in left:
                self.kill(pid)
            self.reap()
            time.sleep(0.02)

    def run(self, result):
        for path, content in (self.host.get("files") or {}).items():
            os.makedirs(os.path.dirname(f"{HOST}/{path}"), exist_ok=True)
            with open(f"{HOST}/{path}", "w", encoding="utf-8") as file:
                file.write(content)
        user = self.host.get("user")
        if user:
            for place in (HOST, "/tmp/home", "/tmp/run"):
                for directory, _, files in os.walk(place):
                    shutil.chown(directory, user)
                    for file in files:
                        shutil.chown(f"{directory}/{file}", user)
        if self.host.get("prepare"):
            status = self.wait(self.start_beside(self.host["prepare"], "prepare", user))
            if status != 0:
                raise Ends(f"preparing: {say_status(status)}")
        command = list(self.host["command"])
        environment = self.environment(self.kind in PRELOADED)
        if self.kind in RUNS:
            options, variables = RUNS[self.kind]
            command = [MEMLOG, "run", *options, "-q", "-o", OUT, "--", *command]
            environment.update(variables)
        began = time.monotonic()
        self.main = self.start(command, "host", environment, user=user)
        if self.kind == "killed":
            self.kill_at = began + self.random.uniform(0, self.spec["plain_seconds"])
        try:
            if self.host.get("client"):
                self.serve(result)
            else:
                self.wait(self.main)
        except Killed:
            pass
        finally:
            self.kill_at = None
            if self.main in self.ended:
                status, moment, used = self.ended[self.main]
                result["status"] = say_status(status)
                result["seconds"] = round(moment - began, 3)
                result["processor"] = round(used, 3)
            else:
                result["seconds"] = round(time.monotonic() - began, 3)


def contents(directory):
    """{path: [kind and mode, size, hash]} below DIRECTORY."""
    found = {}
    for place, directories, files in os.walk(directory):
        for name in directories + files:
            path = f"{place}/{name}"
            try:
                info = os.lstat(path)
                digest = ""
                if stat.S_ISREG(info.st_mode):
                    with open(path, "rb") as file:
                        digest = hashlib.sha256(file.read(64 << 20)).hexdigest()[:16]
                size = info.st_size if stat.S_ISREG(info.st_mode) else 0
                found[os.path.relpath(path, directory)] = [oct(info.st_mode), size, digest]
            except OSError:
                continue
    return found


def is_kept(path):
    """Whether it is the ledger of a process whose end the library did not see, or could not report:
    by a signal, under a filter, by a raw system call after memlog detach. It stays, for memlog
    recover, or until the next memlog sweeps it."""
    if not path.endswith(".ledger"):
        return False
    try:
        with open(path, "rb") as file:
            magic, _, state = struct.unpack("=QII", file.read(16))
            return magic != 0 and state in (0, 3, 4)  # LedgerState in format/ledger.h
    except (OSError, struct.error):
        return False


def litter():
    """{place: paths}, of the places for temporary files."""
    found = {}
    for place in PLACES:
        if place == "/tmp":
            found[place] = [name for name in os.listdir(place) if name not in OWN]
        else:
            found[place] = [os.path.relpath(f"{at}/{name}", place)
                            for at, _, files in os.walk(place) for name in files
                            if not is_kept(f"{at}/{name}")][:3000]
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        spec = json.load(file)
    result = {"phase": spec["phase"], "faults": [], "left": [], "files": {}, "litter": {}}
    with open(spec["result"], "w", encoding="utf-8") as out:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        phase = Phase(spec)
        try:
            if os.getpid() != 1:
                raise Ends("not the first process of a PID namespace")
            mount_all(spec["root"])
            loopback_up()
            other_pids(spec["first_pid"])
            os.umask(0o022)
            try:
                phase.run(result)
                phase.leftovers(result)
                if phase.kind in SIGNALLED:
                    phase.read_all()
            except Ends:
                phase.look()
                raise
            finally:
                phase.end_all()
            result["files"] = contents(HOST)
            result["litter"] = litter()
        except Ends as ends:
            result["ends"] = str(ends)
            result["states"] = phase.states
        except Exception:  # whatever it is becomes the row's reason
            result["ends"] = "the runner failed: " + traceback.format_exc()[-1500:]
        result["memory"] = phase.memory
        result["memlog"] = phase.verbs
        result["memlog_faults"] = phase.faults
        json.dump(result, out)


if __name__ == "__main__":
    main()
