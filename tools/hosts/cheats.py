"""cheats.py: hosts that do under the library what none may do, for self_test.py."""
from host import Host

TRACED = "case $LD_PRELOAD in *libmtrace*) "
FAKE = ("# memlog 2\\n# program: x\\n# pid: 1\\n# seq: 1\\n# trigger: exit\\n# started: x\\n"
        "# taken: x\\n# delta: +5 bytes +1 blocks\\n# live: 5 bytes 1 blocks\\n# lost: frames=0\\n"
        "+4\\tblocks=+1\\tallocs=1\\tallocated=4\\tstack=1\\n# end\\n")


def shell(name, traced, **more):
    """A shell that prints a line, and does TRACED when the library is preloaded."""
    return Host(name, ["sh", "-c", f"echo line; {TRACED}{traced};; esac"],
                more.pop("packages", ["dash"]), kind="cheat", **more)


HOSTS = [
    shell("good", ":"),
    shell("many", "echo more; echo worse >&2; echo x > new; mkdir /dev/shm/left; "
          "touch /dev/shm/left/x.ledger; touch $MTRACE_OUTPUT/.memlog-abcdef; "
          f"printf '{FAKE}' > $MTRACE_OUTPUT/x-1-1.memlog; (setsid sleep 99 &); exit 3"),
    shell("killed", "kill -9 $$"),
    shell("hangs", "sleep 99", seconds=2),
    shell("eats", "LD_PRELOAD= python3 -c 'import time; x = b\"x\" * (300 << 20); time.sleep(9)'", memory=150),
    shell("absent", ":", packages=["no-such-package-of-debian"]),
    Host("never", ["sh", "-c", "exit 7"], ["dash"]),
    Host("missing", ["/no/such/program"], ["dash"]),
    Host("differs", ["sh", "-c", "date +%N; echo $$; echo same"], ["dash"]),
    Host("deaf", ["sh", "-c", f"trap 'exit 0' TERM; {TRACED}trap '' TERM;; esac; touch ready; "
                  "while :; do sleep 0.1; done"], ["dash"],
         ready="/tmp/host/ready", client="echo asked"),
]
