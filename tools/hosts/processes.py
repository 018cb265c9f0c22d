"""processes.py: looks at the processes of one PID namespace through /proc.

A process may end between any two reads: every function answers None or leaves it out then.
"""
import os


def read(pid, name, limit=1 << 20):
    """Content of /proc/PID/NAME, or None."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read(limit)
    except OSError:
        return None


def program(pid):
    """Path of the executable, or None for a zombie, a kernel thread or one that has ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return None


def pids():
    """All process ids but the caller's, ascending."""
    own = os.getpid()
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != own)


def state(pid):
    """The letter of /proc/PID/stat (R, S, D, T, t, Z), or None."""
    text = read(pid, "stat")
    if not text:
        return None
    try:
        return text[text.rindex(b")") + 2:].split()[0].decode()
    except (ValueError, IndexError):
        return None


def resident(pid):
    """Bytes of private and file memory in use, shared memory counted in full; 0 when unknown."""
    text = read(pid, "statm")
    try:
        fields = text.split()
        # Shared pages are counted once for each process, which is too much for servers that fork:
        # only what is private here.
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, IndexError, ValueError):
        return 0


def shared(pid):
    """Bytes of shared and file memory in use; 0 when unknown."""
    text = read(pid, "statm")
    try:
        return int(text.split()[2]) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, IndexError, ValueError):
        return 0


def memory():
    """Estimate of the bytes that all processes hold together."""
    everyone = pids()
    return sum(map(resident, everyone)) + max(map(shared, everyone), default=0)


def has_variable(pid, name):
    """Whether NAME stood in the environment that the process was started with."""
    text = read(pid, "environ") or b""
    return any(entry.startswith(name.encode() + b"=") for entry in text.split(b"\0"))
