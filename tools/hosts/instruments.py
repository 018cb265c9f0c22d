"""instruments.py: hosts that look at, change or run other programs themselves."""
from host import Host

CHURN = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static void *work(void *p) {
  static _Thread_local void *kept[300];
  unsigned seed = (unsigned)(long)p;
  for (int i = 0; i < @N@; ++i) {
    void **slot = &kept[rand_r(&seed) % 300];
    free(*slot);
    *slot = malloc(rand_r(&seed) % 2000 + 1);
    memset(*slot, 1, 1);
    if (i % 1000 == 0) nanosleep(&(struct timespec){0, 1000000}, 0);
  }
  for (int i = 0; i < 300; ++i) free(kept[i]);
  return 0;
}
int main(void) {
  pthread_t t[3];
  for (long i = 0; i < 3; ++i) pthread_create(&t[i], 0, work, (void *)i);
  for (int i = 0; i < 3; ++i) pthread_join(t[i], 0);
  puts("done");
}
"""
GDB = ["gdb", "-nx", "-q", "-batch", "-ex", "set print thread-events off", "-ex", "break puts",
       "-ex", "run >inferior.out", "-ex", "backtrace", "-ex",
       "python print(sum(len(str(i)) for i in range(100000)))", "-ex", "info functions ^work",
       "-ex", "continue", "./a"]


def churn(name, command, package, n, build="gcc -g -pthread a.c -o a", **more):
    """COMMAND, words or a line for the shell, works on the program above."""
    command = ["sh", "-c", command] if isinstance(command, str) else command
    return Host(name, command, [package], n=n, files={"a.c": CHURN}, prepare=build, **more)


def grind(name, *options, n):
    return churn(name, ["valgrind", "-q", *options, "./a"], "valgrind", n)


def sanitized(name, compiler, option, n=60000):
    return churn(name, ["./a"], "clang" if "clang" in compiler else "g++", n,
                 f"{compiler} -g -O1 -pthread -fsanitize={option} a.c -o a", memory=4000)


HOSTS = [
    churn("gdb", GDB, "gdb", 20000),
    churn("strace", "strace -f -o log ./a && grep -c exited log", "strace", 80000),
    churn("ltrace", "ltrace -e puts -o log ./a && grep -c puts log", "ltrace", 100000),
    grind("valgrind", n=10000),
    grind("valgrind-none", "--tool=none", n=40000),
    grind("callgrind", "--tool=callgrind", "--callgrind-out-file=out", n=20000),
    grind("cachegrind", "--tool=cachegrind", "--cachegrind-out-file=out", n=20000),
    grind("lackey", "--tool=lackey", n=2000),
    churn("qemu-user", ["qemu-x86_64", "./a"], "qemu-user", 60000),
    sanitized("asan-gcc", "gcc", "address"),
    sanitized("lsan-gcc", "gcc", "leak"),
    sanitized("tsan-gcc", "gcc", "thread"),
    sanitized("ubsan-gcc", "gcc", "undefined", 400000),
    sanitized("asan-clang", "clang", "address"),
    sanitized("lsan-clang", "clang", "leak"),
    sanitized("tsan-clang", "clang", "thread"),
    sanitized("msan-clang", "clang", "memory"),
    churn("musl", ["./a"], "musl-tools", 200000, "musl-gcc -g a.c -o a"),
    churn("musl-child", "./a; echo $?", "musl-tools", 200000, "musl-gcc -g a.c -o a"),
    churn("static", ["./a"], "g++", 400000, "gcc -static -g -pthread a.c -o a", quick=20000),
    churn("jemalloc", ["./a"], "libjemalloc2", 400000, quick=10000,
          env={"LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"}),
    churn("tcmalloc", ["./a"], "libgoogle-perftools4", 400000,
          "gcc -g -pthread a.c -o a -ltcmalloc_minimal 2>/dev/null || gcc -g -pthread a.c -o a "
          "-l:libtcmalloc_minimal.so.4"),
    churn("heaptrack", ["heaptrack", "-o", "out", "./a"], "heaptrack", 40000),
    churn("gprof", ["./a"], "g++", 300000, "gcc -pg -g -pthread a.c -o a",
          ignored="gmon.out"),  # its samples
    Host("fakeroot", ["fakeroot", "sh", "-c", "touch f; chown 7:8 f; stat -c '%u %g' f; for i in $(seq "
                      "@N@); do mknod d$i c 1 $i; done; ls -ln | md5sum"], ["fakeroot"], n=20,
         user="nobody"),
    Host("faketime", ["faketime", "2001-02-03 04:05:06", "sh", "-c", "for i in $(seq @N@); do date "
                      "+%F; done; python3 -c 'import time; print(time.gmtime().tm_year)'"],
         ["faketime"], n=20),
    Host("bubblewrap", ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
                        "--unshare-pid", "--die-with-parent", "sh", "-c",
                        "for i in $(seq @N@); do echo $i | md5sum; done; [ $$ -lt 100 ]"],
         ["bubblewrap"], n=40),
    Host("timeout", ["timeout", "-s", "INT", "1.5", "sleep", "30"], ["coreutils"],
         status="exit 124"),
    Host("aborts", ["python3", "-c", "import os, time; x = [[] for i in range(@N@)]; time.sleep(1); "
                    "os.abort()"], ["python3"], n=100000, status="signal 6"),
]
for host in HOSTS:
    host.kind = "instrument"
