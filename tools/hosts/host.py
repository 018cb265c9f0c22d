"""host.py: what a host is."""
from dataclasses import dataclass, field


@dataclass
class Host:
    """A program of Debian's with a piece of work, or a server with a client.

    @N@ in strings stands for the amount of work: n, or quick in make check. The work's output must
    not depend on time or process ids more than two runs show. The working directory, /tmp,
    /var/tmp, /run and /dev/shm are empty at the start and the run's own; there is no network but
    the loopback interface.
    """
    name: str
    command: list
    packages: list                 # Debian's; the first one's version stands in the table
    kind: str = ""
    n: int = 1
    quick: int = 0                 # 0: not in make check
    files: dict = field(default_factory=dict)  # path: content, below the working directory
    prepare: str = ""              # shell command before the host, not traced
    env: dict = field(default_factory=dict)
    user: str = ""                 # who runs it, if not root
    status: str = "exit 0"         # how it ends
    seconds: int = 60              # one run may take
    ignored: str = ""              # pattern: files below the working directory not compared
    memory: int = 3000             # MiB that all its processes may hold
    # Servers only:
    client: object = None          # list, or a line for the shell
    client_user: str = ""
    ready: object = None           # port, path (no space in it), or a line for the shell
    stop: str = "TERM"             # signal, or a line for the shell
    start_seconds: int = 30        # until it is ready
