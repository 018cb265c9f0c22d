"""languages.py: hosts that are interpreters, virtual machines, and programs of their compilers."""
from host import Host

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
WORK_JAVA = """
import java.util.*;
import java.util.concurrent.*;

public class Work {
    static long churn(int seed, int rounds) {
        Map<Integer, byte[]> kept = new HashMap<>();
        long sum = 0;
        Random random = new Random(seed);
        for (int i = 0; i < rounds; ++i) {
            byte[] block = new byte[random.nextInt(4000)];
            Arrays.fill(block, (byte) i);
            kept.put(random.nextInt(500), block);
            sum += block.length;
        }
        return sum + kept.size();
    }
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> results = new ArrayList<>();
        for (int t = 0; t < 8; ++t) {
            final int seed = t;
            results.add(pool.submit(() -> churn(seed, @N@)));
        }
        long sum = 0;
        for (Future<Long> result : results) sum += result.get();
        pool.shutdown();
        System.out.println("sum " + sum);
    }
}
"""


def java(name, *options, n=15000):
    return Host(f"java-{name}", [JAVA, *options, "-Xmx300m", "Work.java"],
                ["openjdk-17-jdk-headless"], n=n, files={"Work.java": WORK_JAVA})


RUBY = """
words = Hash.new(0)
threads = 4.times.map do |t|
  Thread.new do
    @N@.times { |i| s = "word#{i % 997}-#{t}"; words[s.upcase.sub(/R/, 'x')] += 1 if i % 7 == 0 }
  end
end
threads.each(&:join)
pids = 3.times.map { |i| fork { a = (1..20000).map(&:to_s); exit!(a.size == 20000 ? i : 99) } }
statuses = pids.map { |pid| Process.wait2(pid)[1].exitstatus }
puts words.size, statuses.inspect, `echo from a shell`
GC.start
"""
PHP = """<?php
$kept = [];
for ($i = 0; $i < @N@; $i++) {
  $s = preg_replace('/[aeiou]/', '-', "some words for number $i");
  $kept[$i % 1000] = explode(' ', $s);
  if ($i % 50000 == 0) { $x = json_decode('{"a": [' . $i . ', {"b": 1}]}'); }
}
echo count($kept), ' ', md5(serialize($kept)), "\\n";
"""
ERLANG = ("F = fun(G, N, A) when N > 0 -> P = self(), spawn(fun() -> "
          "L = lists:seq(1, 2000), P ! lists:sum([X * 2 || X <- L]) end), "
          "receive R -> G(G, N - 1, A + R) end; (_, 0, A) -> A end, "
          "T = ets:new(t, []), [ets:insert(T, {I, integer_to_list(I)}) || I <- lists:seq(1, 20000)],"
          "io:format(\"~p ~p~n\", [F(F, @N@, 0), ets:info(T, size)]).")
GO = """
package main

// #include <stdlib.h>
// #include <string.h>
// static void *get(size_t n) { void *p = malloc(n); memset(p, 1, n); return p; }
import "C"
import (
	"fmt"
	"os/user"
	"strings"
	"sync"
)

func main() {
	var wait sync.WaitGroup
	sums := make([]int, 8)
	for t := 0; t < 8; t++ {
		wait.Add(1)
		go func(t int) {
			defer wait.Done()
			for i := 0; i < @N@; i++ {
				p := C.get(C.size_t(1 + i%3000))
				sums[t] += len(strings.Repeat("x", i%100))
				C.free(p)
			}
		}(t)
	}
	wait.Wait()
	who, err := user.Current()
	fmt.Println(sums, who.Username, err)
}
"""
RUST = """
use std::collections::BTreeMap;
use std::thread;

fn work(t: usize) -> usize {
    let mut kept = BTreeMap::new();
    for i in 0..@N@usize {
        kept.insert(i % 1013, format!("{}-{}", t, i));
        if i % 3 == 0 { kept.remove(&(i % 511)); }
    }
    kept.values().map(|s| s.len()).sum()
}

fn main() {
    let threads: Vec<_> = (0..4).map(|t| thread::spawn(move || work(t))).collect();
    let sum: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    println!("{}", sum);
    for i in 0..3 {
        let failed = thread::spawn(move || { if i < 3 { panic!("on purpose {}", i); } }).join();
        println!("{}", failed.is_err());
    }
}
"""
PYTHON = """
import concurrent.futures, json, multiprocessing, re, subprocess, zlib
def work(seed):
    kept = {}
    for i in range(@N@):
        text = json.dumps({"number": i, "words": ["a%d" % (i % 13)] * (i % 7)})
        kept[i % 500] = re.sub("a", "bb", text)
    return zlib.crc32("".join(kept.values()).encode())
if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(list(pool.map(work, range(4))))
    with multiprocessing.Pool(3) as pool:
        print(pool.map(work, range(6)))
    for i in range(5):
        print(subprocess.run(["sh", "-c", f"echo {i}; exit {i}"], capture_output=True))
"""
PYTHON_PLAIN = """
import json, subprocess, threading, zlib
sums = []
def work(seed):
    kept = {}
    for i in range(@N@):
        kept[i % 500] = json.dumps({"number": i, "words": ["a%d" % (i % 13)] * (i % 7)})
    sums.append(zlib.crc32("".join(kept.values()).encode()))
threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sums, subprocess.run(["sh", "-c", "echo child; exit 3"], capture_output=True))
"""
NODE = """
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const zlib = require('zlib');
if (isMainThread) {
  let sums = [], count = 0;
  for (let t = 0; t < 3; ++t) {
    const worker = new Worker(__filename, { workerData: t });
    worker.on('message', sum => { sums[t] = sum; if (++count === 3) console.log(sums); });
  }
} else {
  let sum = 0;
  for (let i = 0; i < @N@; ++i) {
    const text = JSON.stringify({ i, words: Array(i % 50).fill('w' + workerData) });
    sum += zlib.deflateSync(Buffer.from(text)).length;
  }
  parentPort.postMessage(sum);
}
"""
PERL = """
my %kept; my $sum = 0;
for my $i (1 .. @N@) {
  my @w = map { "w$_" } 1 .. ($i % 9);
  $kept{$i % 700} = join(',', @w);
  (my $s = $kept{$i % 700}) =~ s/w(\\d)/<$1>/g;
  $sum += length $s;
}
my @status;
for my $i (1 .. 3) { my $pid = fork; if (!$pid) { my @a = (1) x 10000; exit $i } waitpid $pid, 0; push @status, $? >> 8 }
print "$sum ", scalar(keys %kept), " @status ", `echo shell`;
"""
LUA = """
local kept, sum = {}, 0
for i = 1, @N@ do
  kept[i % 1000] = string.rep('x', i % 50) .. i
  sum = sum + #(kept[i % 1000]:gsub('x', 'yy'))
  if i % 100 == 0 then
    local c = coroutine.wrap(function() for j = 1, 10 do coroutine.yield({ j }) end end)
    for j = 1, 10 do sum = sum + c()[1] end
  end
end
print(sum, io.popen('echo child'):read('a'))
"""
GUILE = """
(use-modules (ice-9 threads))
(define (churn n acc)
  (if (= n 0) acc
      (churn (- n 1) (+ acc (string-length (apply string-append (map number->string (iota (modulo n 20)))))))))
(define threads (map (lambda (t) (call-with-new-thread (lambda () (churn @N@ 0)))) (iota 3)))
(display (map join-thread threads))
(display (system* "true"))
(newline)
"""
LISP = """
(let ((kept (make-hash-table :test 'equal)) (sum 0))
  (dotimes (i @N@)
    (setf (gethash (format nil "key~d" (mod i 500)) kept) (make-list (mod i 50) :initial-element i))
    (incf sum (length (gethash (format nil "key~d" (mod i 300)) kept))))
  (format t "~d ~d~%" sum (hash-table-count kept)))
"""
OCAML = """
let () =
  let kept = Hashtbl.create 100 in
  let sum = ref 0 in
  for i = 1 to @N@ do
    let s = String.concat "," (List.init (i mod 20) string_of_int) in
    Hashtbl.replace kept (i mod 500) s;
    sum := !sum + String.length s
  done;
  let b = Bigarray.Array1.create Bigarray.float64 Bigarray.c_layout 100000 in
  Bigarray.Array1.fill b 1.0;
  Printf.printf "%d %d\\n" !sum (Hashtbl.length kept)
"""
PROLOG = """
count(0, S, S) :- !.
count(N, S, R) :- atom_concat(key, N, A), atom_length(A, L), findall(X, between(1, 20, X), Xs),
    sum_list(Xs, T), S1 is S + L + T, N1 is N - 1, count(N1, S1, R).
:- count(@N@, 0, R), write(R), nl,
   findall(Id, (between(1, 3, _), thread_create(count(1000, 0, _), Id, [])), Ids),
   forall(member(I, Ids), (thread_join(I, S), write(S), nl)), halt.
"""
R = """
x <- 0
for (i in 1:@N@) { m <- matrix(seq_len(2500) + i, 50); x <- x + sum(m %*% t(m)); s <- paste(letters, i) }
f <- lm(mpg ~ wt + hp, mtcars)
print(x); print(coef(f)); cat(system("echo child", intern = TRUE), "\\n")
"""
OCTAVE = """
x = 0; for i = 1:@N@, a = rand(60); b = a' * inv(a + eye(60)); c = num2str(i); x += numel(c); end
printf('%d\\n', x); printf('%g\\n', sum(eig([2 1; 1 3])));
"""
MONO = """
using System; using System.Collections.Generic; using System.Threading;
class Work {
  static void Main() {
    long[] sums = new long[4]; var threads = new List<Thread>();
    for (int t = 0; t < 4; ++t) { int me = t; var thread = new Thread(() => {
      var kept = new Dictionary<int, string>();
      for (int i = 0; i < @N@; ++i) { kept[i % 500] = new string('x', i % 100) + i; sums[me] += kept[i % 500].Length; }
    }); threads.Add(thread); thread.Start(); }
    foreach (var thread in threads) thread.Join();
    Console.WriteLine(string.Join(" ", sums));
  }
}
"""
PASCAL = """
program work; uses sysutils, classes;
var l: TStringList; i, s: longint;
begin
  l := TStringList.Create; s := 0;
  for i := 1 to @N@ do begin l.Add(IntToStr(i) + 'x'); s := s + Length(l[l.Count - 1]);
    if l.Count > 500 then l.Clear; end;
  writeln(s, ' ', l.Count); l.Free;
end.
"""
FORTRAN = """
program work
  real(8), allocatable :: a(:,:), b(:,:)
  real(8) :: s
  integer :: i
  s = 0
  do i = 1, @N@
    allocate(a(100, 100), b(100, 100)); a = i; b = 2; s = s + sum(matmul(a, b)); deallocate(a, b)
  end do
  print '(es22.12)', s
end program
"""
ADA = """
with Ada.Text_IO; with Ada.Containers.Indefinite_Vectors;
procedure Work is
   package V is new Ada.Containers.Indefinite_Vectors (Positive, String);
   task type T; 
   task body T is L : V.Vector; begin
      for I in 1 .. @N@ loop L.Append (Integer'Image (I)); if I mod 500 = 0 then L.Clear; end if; end loop;
   end T;
begin
   declare A, B, C : T; begin null; end;
   Ada.Text_IO.Put_Line ("done");
end Work;
"""
COBOL = """
       IDENTIFICATION DIVISION.
       PROGRAM-ID. WORK.
       DATA DIVISION.
       WORKING-STORAGE SECTION.
       01 I PIC 9(8).
       01 S PIC 9(12) VALUE 0.
       01 T PIC X(40).
       PROCEDURE DIVISION.
           PERFORM VARYING I FROM 1 BY 1 UNTIL I > @N@
             STRING "NUMBER " I DELIMITED BY SIZE INTO T
             ADD FUNCTION LENGTH(FUNCTION TRIM(T)) TO S
           END-PERFORM.
           DISPLAY S.
           STOP RUN.
"""
SCHEME = """
(define (churn n acc) (if (= n 0) acc (churn (- n 1) (+ acc (length (vector->list (make-vector (modulo n 50) n)))))))
(display (churn @N@ 0)) (newline)
"""

HOSTS = [
    java("serial", "-XX:+UseSerialGC"),
    java("parallel", "-XX:+UseParallelGC"),
    java("g1", "-XX:+UseG1GC"),
    java("z", "-XX:+UseZGC"),
    java("shenandoah", "-XX:+UseShenandoahGC"),
    Host("ruby", ["ruby", "a.rb"], ["ruby"], n=300000, files={"a.rb": RUBY}),
    Host("php", ["php", "a.php"], ["php-cli"], n=700000, files={"a.php": PHP}),
    Host("erlang", ["erl", "-noshell", "-eval", ERLANG, "-s", "init", "stop"], ["erlang-base"],
         n=4000),
    Host("elixir", ["elixir", "-e", "1..@N@ |> Task.async_stream(fn i -> String.duplicate(\"x\", "
                    "i) |> String.length end) |> Enum.reduce(0, fn {:ok, n}, a -> n + a end) "
                    "|> IO.puts"], ["elixir"], n=8000),
    Host("go-build", ["go", "build", "-o", "work", "work.go"], ["golang-go"], n=100,
         files={"work.go": GO, "go.mod": "module work\n"}, seconds=180,
         env={"GOCACHE": "/tmp/home/go", "GOFLAGS": "-mod=mod", "GOPATH": "/tmp/home/gopath"}),
    Host("go-program", ["./work"], ["golang-go"], n=1000000,
         files={"work.go": GO, "go.mod": "module work\n"}, prepare="go build -o work work.go",
         env={"GOCACHE": "/tmp/home/go", "GOFLAGS": "-mod=mod", "GOPATH": "/tmp/home/gopath"},
         seconds=120),
    Host("rust-build", ["rustc", "-O", "work.rs"], ["rustc"], n=10, files={"work.rs": RUST},
         seconds=120),
    Host("rust-program", ["./work"], ["rustc"], n=2500000, files={"work.rs": RUST},
         prepare="rustc -g work.rs 2>/dev/null", env={"RUST_BACKTRACE": "1"}),
    Host("python", ["/usr/bin/python3", "a.py"], ["python3"], n=40000, 
         files={"a.py": PYTHON}),
    Host("python-threads", ["/usr/bin/python3", "a.py"], ["python3"], n=100000, 
         files={"a.py": PYTHON_PLAIN}),
    Host("pypy", ["pypy3", "a.py"], ["pypy3"], n=150000, files={"a.py": PYTHON_PLAIN}),
    Host("node", ["/usr/bin/node", "a.js"], ["nodejs"], n=6000, files={"a.js": NODE}),
    Host("perl", ["perl", "a.pl"], ["perl"], n=400000, files={"a.pl": PERL}),
    Host("perl-sleep", ["perl", "-e", "$t = time; for (1 .. @N@) { sleep 1 } "
                        "$t = time - $t; print $t >= @N@ ? \"slept\\n\" : \"short: $t\\n\"; "
                        "$l = select(undef, undef, undef, 0.7); print \"$l $!\\n\""], ["perl"],
         n=2),
    Host("lua", ["lua5.4", "a.lua"], ["lua5.4"], n=1200000, files={"a.lua": LUA}),
    Host("luajit", ["luajit", "a.lua"], ["luajit"], n=1500000,
         files={"a.lua": LUA.replace("read('a')", "read('*a')")}),
    Host("tcl", ["tclsh", "a.tcl"], ["tcl"], n=200000, files={"a.tcl":
         "set s 0\nfor {set i 0} {$i < @N@} {incr i} { set k([expr {$i % 500}]) [string repeat x "
         "[expr {$i % 60}]]; incr s [llength [split $k([expr {$i % 500}]) x]] }\n"
         "puts \"$s [array size k] [exec echo child]\"\n"}),
    Host("guile", ["guile", "--no-auto-compile", "a.scm"], ["guile-3.0"], n=100000,
         files={"a.scm": GUILE}),
    Host("chicken", ["csi", "-s", "a.scm"], ["chicken-bin"], n=300000, files={"a.scm": SCHEME}),
    Host("racket", ["racket", "-e", SCHEME.replace("vector->list (make-vector (modulo n 50) "
                    "n)", "build-list (modulo n 50) values")], ["racket"], n=300000),
    Host("sbcl", ["sbcl", "--script", "a.lisp"], ["sbcl"], n=150000, files={"a.lisp": LISP}),
    Host("clisp", ["clisp", "a.lisp"], ["clisp"], n=40000, files={"a.lisp": LISP}),
    Host("ecl", ["ecl", "--shell", "a.lisp"], ["ecl"], n=60000, files={"a.lisp": LISP}),
    Host("ocaml", ["ocaml", "a.ml"], ["ocaml-nox"], n=200000, files={"a.ml": OCAML}),
    Host("ocaml-program", ["./a"], ["ocaml-nox"], n=1200000, files={"a.ml": OCAML},
         prepare="ocamlfind ocamlopt -package bigarray a.ml -o a 2>/dev/null || "
                 "ocamlopt a.ml -o a"),
    Host("prolog", ["swipl", "a.pl"], ["swi-prolog-nox"], n=150000, files={"a.pl": PROLOG}),
    Host("r", ["Rscript", "a.R"], ["r-base-core"], n=3000, files={"a.R": R}),
    Host("octave", ["octave-cli", "--no-gui", "-q", "a.m"], ["octave"], n=400,
         files={"a.m": OCTAVE}, seconds=120),
    Host("maxima", ["maxima", "--very-quiet", "--batch-string", "factor(@N@!+1);"
                    "integrate(1/(x^4+1), x);expand((a+b)^60);quit();"], ["maxima"], n=18),
    Host("mono", ["mono", "work.exe"], ["mono-runtime", "mono-mcs"], n=600000,
         files={"work.cs": MONO}, prepare="mcs work.cs"),
    Host("mono-mcs", ["mcs", "work.cs"], ["mono-mcs"], files={"work.cs": MONO}),
    Host("pascal", ["sh", "-c", "fpc -v0 work.pas >/dev/null && ./work"], ["fpc"], n=4000000,
         files={"work.pas": PASCAL}),
    Host("fortran", ["sh", "-c", "gfortran -O1 work.f90 -o work && ./work"], ["gfortran"],
         n=1000, files={"work.f90": FORTRAN}),
    Host("ada", ["sh", "-c", "gnatmake -q work.adb && ./work"], ["gnat"], n=1000000,
         files={"work.adb": ADA}),
    Host("cobol", ["sh", "-c", "cobc -x work.cob && ./work"], ["gnucobol4"], n=500000,
         files={"work.cob": COBOL}),
    Host("gforth", ["gforth", "-e", ": w @N@ 0 do 100 allocate throw dup 100 i fill free throw "
                    "loop ; w .\" done\" cr bye"], ["gforth"], n=20000000),
    Host("bash", ["bash", "-c", "for ((i = 0; i < @N@; ++i)); do x=$(echo $i); y=$((y + x)); done; "
                  "echo $y"], ["bash"], n=150),
    Host("zsh", ["zsh", "-fc", "for ((i = 0; i < @N@; ++i)); do a[i+1]=x$i; b=${(j:,:)a[1,20]}; "
                 "done; print ${#a} $b"], ["zsh"], n=60000, quick=3000),
    Host("fish", ["fish", "-N", "-c", "for i in (seq @N@); set a $a[-50..-1] (string repeat -n 5 x$i);"
                  " end; echo (count $a) $a[-1]"], ["fish"], n=20000, quick=300),
    Host("gawk", ["gawk", "BEGIN { for (i = 0; i < @N@; i++) { a[i % 700] = a[(i * 7) % 700] i; if "
                  "(length(a[i % 700]) > 400) a[i % 700] = \"\"; gsub(/7/, \"77\", a[i % 700]) } "
                  "for (k in a) s += length(a[k]); print s }"], ["gawk"], n=300000),
    Host("bc", ["sh", "-c", "echo 'scale=@N@; 4*a(1); e(1)' | bc -l"], ["bc"], n=1500),
    Host("m4", ["m4", "a.m4"], ["m4"], n=30000, files={"a.m4":
         "define(`loop', `ifelse($1, 0, , `define(`k'eval($1 % 100), $1)loop(decr($1))')')dnl\n"
         "loop(@N@)k7\n"}),
]
for host in HOSTS:
    host.kind = "language"
