"""confined.py: hosts that confine themselves, change users, or have a collector or an allocator of
their own that stops threads or moves memory."""
from host import Host

TEXT = "".join(f"Line {i} of a text with words, numbers like {i * i} and a tail.\n"
               for i in range(20000))
MANUAL = ".TH A 1\n.SH NAME\na \\- does it\n.SH DESCRIPTION\n" + \
    "".join(f".PP\nThe \\fBword\\fR number {i} of the text.\n" for i in range(2000))
CHRONY = "port 0\ncmdport 0\nuser root\nlocal stratum 10\npidfile /tmp/host/pid\n" \
         "driftfile /tmp/host/drift\nbindcmdaddress /tmp/host/run/sock\n"
VSFTPD = "listen=YES\nlisten_address=127.0.0.1\nlisten_port=2121\nanonymous_enable=YES\n" \
         "anon_root=/tmp/host/ftp\nno_anon_password=YES\nbackground=NO\nnopriv_user=nobody\n" \
         "ftp_username=nobody\nsecure_chroot_dir=/tmp/host/empty\nseccomp_sandbox=YES\n" \
         "xferlog_enable=NO\n"
TORRC = "SocksPort 9050\nDataDirectory /tmp/host/data\nDisableNetwork 1\nSandbox 1\nShutdownWaitLength 0\nUser nobody\n" \
        "Log notice stdout\n"
D_CODE = """
import std.stdio, std.array, std.conv, core.thread, core.memory;
__gshared long[4] sums;
void work(int t) {
  string[] kept;
  foreach (i; 0 .. @N@) {
    kept ~= to!string(i * t) ~ "x".replicate(i % 50);
    if (kept.length > 500) { sums[t] += kept.length; kept = kept[250 .. $].dup; }
    if (i % 2000 == 0) GC.collect();
  }
}
void main() {
  Thread[] threads;
  foreach (t; 0 .. 4) { auto own = t; threads ~= new Thread({ work(own); }).start(); }
  foreach (thread; threads) thread.join();
  writeln(sums[0] + sums[1] + sums[2] + sums[3]);
}
"""
NIM = """
import tables
var kept = initTable[string, seq[int]]()
for i in 0 ..< @N@:
  kept.mgetOrPut("key" & $(i mod 997), @[]).add(i)
  if i mod 50000 == 0: kept.clear()
var sum = 0
for k, v in kept: sum += v.len
echo sum
"""
SCHEME = "(define (churn n acc) (if (= n 0) (length acc) (churn (- n 1) (if (= 0 (modulo n 1000)) " \
         "'() (cons (make-vector 20 n) acc)))))\n(display (churn @N@ '()))\n(newline)\n(exit)\n"
SML = "val it = print (Int.toString (List.foldl (op +) 0 (List.tabulate (@N@, fn i => " \
      "size (Int.toString i)))) ^ \"\\n\");\n"
PIKE = "int main() { mapping m = ([]); for (int i = 0; i < @N@; i++) m[\"k\" + i % 999] = " \
       "({ i, (string)i }); write(\"%d\\n\", sizeof(m)); return 0; }\n"
FIO = "fio --name=a --filename=a.dat --size=16m --rw=randrw --bs=4k --numjobs=4 --thread=0 " \
      "--ioengine=psync --verify=crc32c --time_based=0 --group_reporting --output=out.txt " \
      "--loops=@N@ && grep -c 'err= 0' out.txt; rm -f a.dat out.txt"
EXPECT = """
for {set i 0} {$i < @N@} {incr i} {
  spawn -noecho sh -c "read x; echo got \\$x"
  send "$i\\r"
  expect -re {got ([0-9]+)} {set found $expect_out(1,string)}
  expect eof
  wait
}
puts "last $found"
"""

# In a group of its own with 100 MiB (cgroups 1 or 2), where one may be made; else without a limit.
CGROUP = """
for g in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  [ -f $g/cgroup.procs ] && mkdir $g/mtrace-host 2>/dev/null || continue
  for limit in memory.limit_in_bytes memory.max; do
    [ ! -f $g/mtrace-host/$limit ] || echo 100M >$g/mtrace-host/$limit
  done
  echo $$ >$g/mtrace-host/cgroup.procs && break
done
/usr/bin/python3 -c '
kept = [bytes(1 << 20) for _ in range(@N@)]
print(len(kept), sum(len(one) for one in kept))'
for g in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  [ -d $g/mtrace-host ] || continue
  echo $$ >$g/cgroup.procs
  until rmdir $g/mtrace-host 2>/dev/null; do sleep 0.05; done  # a resolver may still be in it
done
"""

HOSTS = [
    # Filters of system calls of their own
    Host("man", ["sh", "-c", "for i in $(seq @N@); do man -P cat ./a.1 | md5sum; done"], ["man-db"],
         n=4, files={"a.1": MANUAL}, user="nobody"),
    Host("file", ["sh", "-c", "for i in $(seq @N@); do file /bin/ls /etc/passwd /usr/lib/*.so* a.txt "
                  "| md5sum; done"], ["file"], n=4, files={"a.txt": TEXT}),
    Host("tor", ["tor", "-f", "/tmp/host/torrc", "--defaults-torrc", "/dev/null"], ["tor"],
         files={"torrc": TORRC}, ready="grep -q 'Opened Socks listener\\|Delaying directory\\|"
         "DisableNetwork is set' /tmp/log/host.out", client="sleep 2", stop="INT",
         ignored="data/", prepare="install -d -o nobody -m 700 data"),
    Host("chronyd", ["chronyd", "-d", "-x", "-F", "1", "-f", "/tmp/host/chrony.conf"], ["chrony"],
         files={"chrony.conf": CHRONY}, prepare="mkdir -m 750 run", ready="/tmp/host/run/sock",
         client="for i in $(seq @N@); do chronyc -h /tmp/host/run/sock -c tracking | cut -d, -f3; done",
         n=20, ignored="drift"),
    Host("vsftpd", ["vsftpd", "/tmp/host/vsftpd.conf"], ["vsftpd", "curl"],
         files={"vsftpd.conf": VSFTPD, "ftp/a.txt": TEXT}, prepare="mkdir empty; chmod 555 ftp; "
         "chown root vsftpd.conf", ready=2121, n=20, client="for i in $(seq @N@); do curl -s "
         "ftp://127.0.0.1:2121/a.txt | md5sum; done", status="signal 15"),
    # Users, roots, namespaces
    Host("setpriv", ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups",
                     "--bounding-set", "-all", "--no-new-privs", "sh", "-c",
                     "for i in $(seq @N@); do id -u | md5sum; done"], ["util-linux"], n=30),
    Host("unshare", ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork",
                     "--mount-proc", "sh", "-c", "mount -t tmpfs t /mnt && for i in $(seq @N@); do "
                     "echo $$ $i | tee /mnt/$i | md5sum; done; ls /mnt | wc -l"], ["util-linux"],
         n=30),
    Host("chroot", ["chroot", "--userspec=nobody:nogroup", "/", "python3", "-c",
                    "import os; k = [str(i) * 9 for i in range(@N@)]; print(os.getuid(), len(k))"],
         ["coreutils"], n=300000),
    Host("fakechroot", ["fakechroot", "sh", "-c", "for i in $(seq @N@); do ls -1 /etc | md5sum; done"],
         ["fakechroot"], n=20, user="nobody"),
    # A tracer that waits with __WALL for all its children; roots in which the library is not seen
    Host("proot", ["proot", "-r", "/", "sh", "-c", "for i in $(seq @N@); do /bin/echo $i; done"],
         ["proot"], n=10),
    Host("bwrap-alone", ["bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
                         "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin",
                         "--proc", "/proc", "sh", "-c", "for i in $(seq @N@); do ls /usr | md5sum; "
                         "done"], ["bubblewrap"], n=10),
    Host("cgroup", ["sh", "-c", CGROUP], ["python3"], n=60),
    # Collectors and allocators
    Host("ldc", ["ldc2", "-O1", "a.d", "-of=a"], ["ldc"], n=100, files={"a.d": D_CODE}),
    Host("d-program", ["./a"], ["ldc"], n=40000, files={"a.d": D_CODE},
         prepare="ldc2 -O1 a.d -of=a"),
    Host("nim", ["nim", "c", "--hints:off", "--nimcache:/tmp/host/cache", "a.nim"], ["nim"], n=100,
         files={"a.nim": NIM}, ignored="cache/", seconds=120),
    Host("chez", ["chezscheme", "--script", "a.ss"], ["chezscheme"], n=1500000,
         files={"a.ss": SCHEME}),
    Host("smlnj", ["sh", "-c", "sml <a.sml"], ["smlnj"], n=300000, files={"a.sml": SML}),
    Host("pike", ["pike8.0", "a.pike"], ["pike8.0-core"], n=400000, files={"a.pike": PIKE}),
    Host("w3m", ["w3m", "-dump", "-cols", "80", "a.html"], ["w3m"], files={"a.html": "<html><body>" +
         "".join(f"<table><tr><td>{i}<td><b>{i * i}</b></table>" for i in range(1500))}),
    Host("mold", ["sh", "-c", "for i in $(seq @N@); do g++ -B /usr/libexec/mold a.o -o a && ./a; done"],
         ["mold", "g++"], n=6, files={"a.cc": "#include <iostream>\nint main() { std::cout << 6 * 7 << "
                               "'\\n'; }\n"}, prepare="g++ -c -g a.cc"),
    Host("neovim", ["nvim", "-es", "-u", "NONE", "+lua local t = {}; for i = 1, @N@ do t[i % 999] = "
                    "('x'):rep(i % 70) .. i end; vim.fn.writefile({#t}, 'out')", "+q"], ["neovim"],
         n=600000),
    Host("fd", ["sh", "-c", "fdfind -e h . /usr/include | wc -l"], ["fd-find"]),
    # Processes and threads
    Host("pigz", ["sh", "-c", "for i in $(seq @N@); do pigz -p 4 -c a.txt | md5sum; done"], ["pigz"],
         n=10, files={"a.txt": TEXT}),
    Host("fio", ["sh", "-c", FIO], ["fio"], n=2),
    Host("expect", ["expect", "a.exp"], ["expect"], n=15, files={"a.exp": EXPECT}),
    Host("parallel", ["sh", "-c", "seq @N@ | parallel -j 3 -k 'echo {} | md5sum'"], ["parallel"],
         n=20),
]
for host in HOSTS:
    host.kind = "confined"
