"""programs.py: hosts that do one piece of work and end: desktop, media, text, compilers, solvers."""
from host import Host

PAGE = "<html><body><h1>Title</h1>" + "<p>some text and <b>more</b></p>" * 300 + \
    "<script>let s = 0; for (let i = 0; i < 300000; ++i) s += [i, i + 1].length; " \
    "document.title = 's' + s; document.body.append('sum ' + s)</script></body></html>\n"
TEXT = "".join(f"Line {i} of a text with words, numbers like {i * i} and a tail.\n"
               for i in range(3000))
CSV = "".join(f"{i},{i * i % 97},name{i % 13}\n" for i in range(4000))
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400">' + "".join(
    f'<circle cx="{i * 7 % 400}" cy="{i * 13 % 400}" r="{i % 40}" fill="#{i * 77777 % 0xffffff:06x}" '
    f'opacity="0.5"/><text x="{i % 300}" y="{i * 3 % 400}">t{i}</text>' for i in range(300)) + "</svg>"
POV = ("camera { location <0, 2, -5> look_at 0 } light_source { <5, 9, -9> rgb 1 } "
       "plane { y, -1 pigment { checker rgb 1 rgb 0 } finish { reflection 0.3 } } " +
       " ".join(f"sphere {{ <{i % 5 - 2}, {i // 5 - 1}, {i % 3}>, 0.5 pigment {{ rgb <{i % 3}, "
                f"{i % 2}, 0.5> }} finish {{ phong 1 }} }}" for i in range(20)))
MARKDOWN = "".join(f"# Part {i}\n\nSome *text* with `code`, a [link](http://x/{i}) and\n\n"
                   f"| a | b |\n|---|---|\n| {i} | {i * i} |\n\n" for i in range(60))
LATEX = ("\\documentclass{article}\\begin{document}\n" + "".join(
    f"\\section{{Part {i}}} Text with $\\sum_{{k=1}}^{{{i}}} k^2$ and words. " + "word " * 200 + "\n"
    for i in range(30)) + "\\end{document}\n")
POSTSCRIPT = "%!PS\n/Helvetica findfont 12 scalefont setfont\n" + "".join(
    f"{20 + i % 9} {700 - 14 * (i % 50)} moveto (Line {i} of a text) show\n"
    f"0.{i % 10} 0.5 0.7 setrgbcolor {i % 400} {i % 700} {i % 60} 0 360 arc stroke\n" +
    ("showpage\n" if i % 50 == 49 else "") for i in range(1000))
DOT = "digraph { " + " ".join(f"n{i} -> n{i * 7 % 60}; n{i} -> n{(i + 3) % 60};" for i in range(60)) + "}"
CPP = """
#include <algorithm>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <vector>
template <int N> struct F { static long f(long x) { return F<N - 1>::f(x) * x + N; } };
template <> struct F<0> { static long f(long) { return 1; } };
int main() {
  std::map<std::string, std::vector<long>> kept;
  for (int i = 0; i < 1000; ++i) kept["key" + std::to_string(i % 37)].push_back(F<50>::f(i));
  std::regex r("k(e+)y([0-9]*)");
  long sum = 0;
  for (auto& [name, list] : kept) if (std::regex_match(name, r)) sum += list.size();
  std::cout << sum << '\\n';
}
"""
C_UNIT = "#include <stdio.h>\n#include <stdlib.h>\n" + "".join(
    f"int f%s_{i}(int x) {{ char *p = malloc(x + {i}); int n = snprintf(p, x + {i}, \"%%d\", x); "
    "free(p); return n; }\n" for i in range(60))
UNITS = {f"u{i}.c": C_UNIT.replace("%s", str(i)).replace("%%", "%") for i in range(12)}
MAKEFILE = "OBJ := $(patsubst %.c,%.o,$(wildcard u*.c))\nlibunits.a: $(OBJ)\n\tar rcsD $@ $^\n" \
           "%.o: %.c\n\t@gcc -O1 -c $< -o $@\n"
CMAKE = "cmake_minimum_required(VERSION 3.20)\nproject(units C)\nfile(GLOB U u*.c)\n" \
        "add_library(units STATIC ${U})\n"
MESON = "project('units', 'c')\nstatic_library('units', [" + \
    ", ".join(f"'u{i}.c'" for i in range(12)) + "])\n"
BISON = """
%{
#include <stdio.h>
int yylex(void); void yyerror(const char *s) { puts(s); }
%}
%token NUM
%left '+' '-'
%left '*' '/'
%%
lines: | lines e '\\n' { printf("%d\\n", $2); } ;
e: NUM | e '+' e { $$ = $1 + $3; } | e '*' e { $$ = $1 * $3; } | '(' e ')' { $$ = $2; } ;
%%
int main(void) { return yyparse(); }
"""
FLEX = """
%{
#include "g.tab.h"
extern int yylval;
%}
%option noyywrap
%%
[0-9]+ { yylval = atoi(yytext); return NUM; }
[ ]+ ;
.|\\n return *yytext;
%%
"""
CALCULATION = "1 + 2 * (3 + 4) * 5\n"
XML = "<list>" + "".join(f"<item id='{i}'><name>n{i % 17}</name><v>{i * i}</v></item>"
                         for i in range(4000)) + "</list>"
XSL = """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="text"/><xsl:key name="k" match="item" use="name"/>
<xsl:template match="/list"><xsl:for-each select="item[generate-id() = generate-id(key('k', name)[1])]">
<xsl:sort select="name"/><xsl:value-of select="name"/>=<xsl:value-of select="sum(key('k', name)/v)"/>;
</xsl:for-each></xsl:template></xsl:stylesheet>
"""
SQL = """
create table t (id integer primary key, name text, n int);
with recursive c(i) as (select 1 union all select i + 1 from c where i < @N@)
  insert into t select i, printf('name%d%s', i, hex(i * 77777)), i % 97 from c;
create index i on t (name);
select n, count(*), max(name) from t group by n order by n limit 5;
update t set name = name || 'x' where n < 50;
select count(*), sum(length(name)) from t;
select count(*) from t a join t b on a.n = b.id;
create virtual table f using fts5(x); insert into f select name from t;
select count(*) from f where f match 'name1*';
"""
PIGEONS = "p cnf 72 297\n" + "".join(
    " ".join(str(p * 8 + h + 1) for h in range(8)) + " 0\n" for p in range(9)) + "".join(
    f"-{p * 8 + h + 1} -{q * 8 + h + 1} 0\n" for h in range(8) for p in range(9) for q in range(p))
SMT = "".join(f"(declare-const x{i} Int)\n(assert (and (> x{i} 0) (< x{i} 40)))\n" for i in range(12)) + \
    "".join(f"(assert (not (= x{i} x{j})))\n" for i in range(12) for j in range(i)) + \
    "(assert (= (+ " + " ".join(f"(* {i + 1} x{i})" for i in range(12)) + ") 777))\n(check-sat)\n"
LP = "Maximize\n o: " + " + ".join(f"{1 + i * 7 % 13} x{i}" for i in range(40)) + "\nSubject To\n" + \
    "".join(f" c{j}: " + " + ".join(f"{1 + i * j % 11} x{i}" for i in range(40)) + f" <= {500 + j}\n"
            for j in range(30)) + "General\n" + " ".join(f"x{i}" for i in range(40)) + "\nEnd\n"
ASM = "section .text\nglobal f\nf:\n" + "".join(f" add rax, {i}\n" for i in range(9000)) + " ret\n"
ELISP = """
(require 'org) (require 'cc-mode)
(with-temp-buffer (dotimes (i @N@) (insert (format "int f%d(int x) { if (x) { return x + %d; } }\\n" i i)))
  (c-mode) (indent-region (point-min) (point-max)) (font-lock-ensure)
  (message "%d %s" (buffer-size) (md5 (current-buffer))))
"""
VIM = "for i in range(@N@)\n call append('$', 'line ' . i . ' of text')\nendfor\n" \
      "%s/line \\(\\d\\+\\)/\\=submatch(1) * 2/\n%sort\nsyntax on\nwrite! out\nqall!\n"
OFFICE = ["soffice", "--headless", "--norestore", "-env:UserInstallation=file:///tmp/home/office"]

# Prints a line for each of @N@ rounds on the serial port and ends the machine: a boot sector.
BOOT = """
org 0x7c00
mov cx, @N@
round: mov bx, 0
next: mov al, [text + bx]
test al, al
jz done
mov dx, 0x3f8
out dx, al
inc bx
jmp next
done: loop round
mov dx, 0x501
mov al, 3
out dx, al
hlt
text: db "hello", 10, 0
times 510 - ($ - $$) db 0
dw 0xaa55
"""
QT = """
import sys
from PyQt5.QtCore import QTimer
from PyQt5.QtWidgets import QApplication, QPushButton, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget
app = QApplication(sys.argv)
window = QWidget(); layout = QVBoxLayout(window)
table = QTableWidget(@N@, 4); layout.addWidget(table); layout.addWidget(QPushButton("press"))
for row in range(@N@):
    for column in range(4):
        table.setItem(row, column, QTableWidgetItem(f"{row} {column}"))
window.show()
QTimer.singleShot(300, app.quit)
app.exec_()
print(table.rowCount(), window.grab().width() > 0)
"""
GTK = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import GLib, Gtk
window = Gtk.Window(); box = Gtk.VBox(); window.add(box)
store = Gtk.ListStore(int, str); view = Gtk.TreeView(model=store)
scroll = Gtk.ScrolledWindow(); scroll.add(view); box.add(scroll)
view.append_column(Gtk.TreeViewColumn("number", Gtk.CellRendererText(), text=0))
view.append_column(Gtk.TreeViewColumn("text", Gtk.CellRendererText(), text=1))
for i in range(@N@): store.append([i, "row %d" % i])
window.show_all(); GLib.timeout_add(300, Gtk.main_quit); Gtk.main()
print(len(store))
"""

HOSTS = [
    # Desktop
    Host("firefox", ["firefox-esr", "--headless", "--screenshot", "/tmp/host/shot.png",
                     "--window-size=400,300", "file:///tmp/host/a.html"], ["firefox-esr"],
         files={"a.html": PAGE}, seconds=120, memory=6000,
         env={"MOZ_DISABLE_CONTENT_SANDBOX": "", "MOZ_HEADLESS": "1"}),
    Host("chromium", ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                      "file:///tmp/host/a.html"], ["chromium"], files={"a.html": PAGE},
         seconds=120, memory=6000),
    Host("chromium-sandbox", ["chromium", "--headless", "--disable-gpu", "--dump-dom",
                              "file:///tmp/host/a.html"], ["chromium"], files={"a.html": PAGE},
         user="nobody", seconds=120, memory=6000),
    Host("writer", [*OFFICE, "--convert-to", "pdf", "a.html"], ["libreoffice-writer-nogui"],
         files={"a.html": PAGE}, seconds=120),
    Host("calc", [*OFFICE, "--convert-to", "xlsx", "a.csv"], ["libreoffice-calc-nogui"],
         files={"a.csv": CSV}, seconds=120),
    Host("emacs", ["emacs", "--batch", "-Q", "-l", "a.el"], ["emacs-nox"], n=600,
         files={"a.el": ELISP}),
    Host("vim", ["vim", "-es", "-u", "NONE", "-S", "a.vim"], ["vim-nox"], n=60000,
         files={"a.vim": VIM}),
    # Pictures, sound, films
    Host("ffmpeg", ["ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
                    "testsrc=size=640x360:duration=@N@", "-f", "lavfi", "-i",
                    "sine=duration=@N@", "-c:v", "libx264", "-threads", "2", "-c:a", "aac",
                    "-fflags", "+bitexact", "-flags", "+bitexact", "out.mkv"], ["ffmpeg"], n=15),
    Host("ffmpeg-filter", ["ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i",
                           "mandelbrot=size=320x240:rate=10", "-t", "@N@", "-vf",
                           "scale=480:360,hue=s=2,drawgrid,transpose", "-f", "framemd5", "-"],
         ["ffmpeg"], n=5),
    Host("imagemagick", ["convert-im6", "-size", "900x900", "plasma:red-blue", "-blur", "0x@N@",
                         "-swirl", "90", "-resize", "50%", "-define", "png:exclude-chunks=date,time",
                         "out.png"], ["imagemagick"], n=6),
    Host("graphicsmagick", ["gm", "convert", "-size", "1200x1200", "gradient:red-blue", "-swirl",
                            "120", "-gaussian", "0x@N@", "-resize", "50%", "out.ppm"],
         ["graphicsmagick"], n=5),
    Host("netpbm", ["sh", "-c", "pbmmake -gray 600 600 | pgmnoise 2>/dev/null 700 700 -randomseed 1 "
                    "| pnmscale 2 | pnmsmooth | pnmtopng | md5sum"], ["netpbm"]),
    Host("rsvg", ["sh", "-c", "for i in $(seq @N@); do rsvg-convert -w 900 a.svg | md5sum; done"],
         ["librsvg2-bin"], n=8, files={"a.svg": SVG}),
    Host("povray", ["povray", "-D", "+Ia.pov", "+Oout.png", "+W400", "+H300", "+Q9", "+A0.1",
                    "+WT2"], ["povray"], files={"a.pov": POV}),
    Host("sox", ["sox", "-n", "-r", "44100", "out.wav", "synth", "@N@", "pluck", "C", "reverb",
                 "flanger", "norm"], ["sox"], n=40),
    Host("gnuplot", ["gnuplot", "-e", "set terminal svg; set output 'out.svg'; set isosamples @N@;"
                     "splot sin(x)*cos(y) with pm3d"], ["gnuplot-nox"], n=250),
    Host("dot", ["sh", "-c", "for i in $(seq @N@); do dot -Tsvg a.dot; neato -Tpng a.dot; done | "
                 "md5sum"], ["graphviz"], n=8, files={"a.dot": DOT}),
    Host("tesseract", ["sh", "-c", "tesseract a.pgm - 2>/dev/null; echo $?"], ["tesseract-ocr"],
         prepare="convert-im6 -size 600x100 -gravity center label:'Some words to read' -depth 8 a.pgm",
         env={"OMP_THREAD_LIMIT": "2"}),
    # Text
    Host("pdflatex", ["sh", "-c", "pdflatex -interaction=batchmode a.tex >/dev/null; pdflatex "
                      "-interaction=batchmode a.tex >/dev/null; ls"], ["texlive-latex-base"],
         files={"a.tex": LATEX}, env={"SOURCE_DATE_EPOCH": "1", "TEXMFVAR": "/tmp/home"}),
    Host("ghostscript", ["gs", "-q", "-dBATCH", "-dNOPAUSE", "-sDEVICE=ppmraw", "-r80",
                         "-sOutputFile=p%d.ppm", "a.ps"], ["ghostscript"], files={"a.ps": POSTSCRIPT}),
    Host("poppler", ["sh", "-c", "pdftotext a.pdf - | md5sum; pdftoppm -r 50 a.pdf p; ls | wc -l"],
         ["poppler-utils", "ghostscript"], files={"a.ps": POSTSCRIPT},
         prepare="ps2pdf a.ps a.pdf"),
    Host("pandoc", ["sh", "-c", "for f in html latex docx epub; do pandoc a.md -o a.$f; done; "
                    "wc -c < a.html"], ["pandoc"], files={"a.md": MARKDOWN},
         env={"SOURCE_DATE_EPOCH": "1"}, seconds=120),
    Host("doxygen", ["sh", "-c", "(echo INPUT=. ; echo QUIET=YES; echo EXTRACT_ALL=YES; echo "
                     "GENERATE_LATEX=NO; echo HTML_TIMESTAMP=NO) | doxygen - 2>/dev/null; ls html | "
                     "wc -l"], ["doxygen"], files={"a.cc": CPP, **UNITS}),
    Host("groff", ["sh", "-c", "for i in $(seq @N@); do groff -Tutf8 -man "
                   "/tmp/host/a.man | md5sum; done"], ["groff-base"], n=8, 
         files={"a.man": ".TH X 1\n" + "".join(f".SH PART {i}\nText \\fBbold\\fR {i}.\n"
                                              for i in range(200))}),
    Host("xsltproc", ["sh", "-c", "for i in $(seq @N@); do xsltproc a.xsl a.xml | md5sum; done"],
         ["xsltproc"], n=12, files={"a.xml": XML, "a.xsl": XSL}),
    Host("xmllint", ["xmllint", "--format", "--repeat", "--noout", "--xpath", "count(//item[v > 9])",
                     "a.xml"], ["libxml2-utils"], files={"a.xml": XML}),
    Host("jq", ["sh", "-c", "seq @N@ | jq -c '{n: ., s: (tostring + \"x\") , l: [range(. % 9)]}' | "
                "jq -s 'map(.l | length) | add, length'"], ["jq"], n=60000),
    Host("ripgrep", ["sh", "-c", "for i in $(seq @N@); do rg -j2 -c --sort path 'mall?oc|[a-z]+_free' "
                     "/usr/include/linux | md5sum; done"], ["ripgrep"], n=40, quick=1),
    Host("sqlite", ["sh", "-c", "sqlite3 a.db < a.sql"], ["sqlite3"], n=120000, quick=4000, 
         files={"a.sql": SQL}),
    # Compression, ciphers
    Host("xz", ["sh", "-c", "cat /usr/share/perl/5.36/*.p[lm] /usr/bin/perl /usr/bin/git | xz -T2 -3 | xz -dc | "
                "md5sum"], ["xz-utils"]),
    Host("zstd", ["sh", "-c", "cat /usr/share/perl/5.36/*.p[lm] /usr/bin/perl /usr/bin/git | zstd -T2 -15 | zstd -dc "
                  "| md5sum"], ["zstd"]),
    Host("7z", ["sh", "-c", "7z a -mmt2 -bso0 -bsp0 a.7z /usr/share/perl/5.36/unicore && 7z t -bsp0 "
                "-bso0 a.7z && rm a.7z; echo $?"], ["p7zip-full"]),
    Host("brotli", ["sh", "-c", "cat /usr/share/perl/5.36/*.p[lm] | brotli -q 9 -c | brotli -dc | "
                    "md5sum"], ["brotli"]),
    Host("openssl", ["sh", "-c", "openssl genrsa -out k @N@ 2>/dev/null; openssl req -new -x509 -key "
                     "k -subj /CN=x -out c; seq 200000 | openssl enc -aes-256-cbc -pbkdf2 -k x | "
                     "openssl enc -d -aes-256-cbc -pbkdf2 -k x | md5sum; openssl verify -CAfile c c; "
                     "for i in 1 2 3 4 5 6 7 8; do openssl dgst -sign k c | wc -c; done; rm k c"],
         ["openssl"], n=2048),
    Host("gnupg", ["sh", "-c", "gpg -q --batch --passphrase '' --quick-gen-key a@b default default "
                   "never 2>/dev/null; for i in $(seq @N@); do seq 9999 | gpg -q --batch "
                   "--trust-model always -e -r a@b | gpg -q --batch -d | md5sum; done; "
                   "gpgconf --kill all"], ["gnupg"], n=12, env={"GNUPGHOME": "/tmp/run"}),
    Host("git", ["sh", "-c", "git init -q r && cd r && for i in $(seq @N@); do seq $i 3000 > f$((i % "
                 "7)); git add . && git -c user.name=a -c user.email=a@b commit -qm c$i; done; git "
                 "log --oneline | wc -l; git gc -q; git fsck; git blame f1 | wc -l; git diff HEAD~2 "
                 "| wc -l; cd ..; rm -rf r"], ["git"], n=20, 
         env={"GIT_CONFIG_NOSYSTEM": "1"}),
    Host("curl", ["sh", "-c", "for i in $(seq @N@); do curl -s file:///tmp/host/a.txt | md5sum; done; "
                  "curl -s http://127.0.0.1:1/; echo $?"], ["curl"], n=40, files={"a.txt": TEXT}),
    # Compilers
    Host("gcc", ["gcc", "-O2", "-c", "all.c", "-o", "all.o"], ["g++"], prepare="cat u*.c | "
         "sed 's/ f/ g/' > all.c", files=UNITS),
    Host("g++", ["g++", "-O2", "-std=c++20", "a.cc", "-o", "a"], ["g++"], files={"a.cc": CPP}),
    Host("g++-lto", ["g++", "-O2", "-flto=2", "-std=c++20", "a.cc", "-o", "a"], ["g++"],
         files={"a.cc": CPP}, seconds=120),
    Host("clang++", ["clang++", "-O2", "-std=c++20", "a.cc", "-o", "a"], ["clang"],
         files={"a.cc": CPP}),
    Host("lld", ["clang++", "-fuse-ld=lld", "-g", "-std=c++20", "a.cc", "-o", "a"], ["lld", "clang"],
         files={"a.cc": CPP}),
    Host("make", ["make", "-s", "-j2"], ["make"], files={**UNITS, "Makefile": MAKEFILE}),
    Host("cmake-ninja", ["sh", "-c", "cmake -G Ninja -S . -B b >/dev/null && ninja -C b -j2 >/dev/null "
                         "&& ls b/libunits.a"], ["cmake", "ninja-build"],
         files={**UNITS, "CMakeLists.txt": CMAKE}, seconds=120),
    Host("meson", ["sh", "-c", "meson setup b >/dev/null && ninja -C b -j2 >/dev/null && ls "
                   "b/libunits.a"], ["meson"], files={**UNITS, "meson.build": MESON}, seconds=120),
    Host("ccache", ["sh", "-c", "for i in 1 2; do for f in u*.c; do ccache gcc -c $f; done; done; "
                    "ls *.o | wc -l"], ["ccache"], files=UNITS, env={"CCACHE_DIR": "/tmp/home/cc"}),
    Host("bison-flex", ["sh", "-c", "bison -d g.y 2>/dev/null && flex l.l && gcc -w -o c g.tab.c "
                        "lex.yy.c && for i in $(seq @N@); do ./c < e; done | md5sum"],
         ["bison", "flex"], n=20, files={"g.y": BISON, "l.l": FLEX, "e": CALCULATION}),
    Host("nasm", ["nasm", "-f", "elf64", "a.asm", "-o", "a.o"], ["nasm"], files={"a.asm": ASM}),
    # Solvers, games
    Host("z3", ["z3", "a.smt2"], ["z3"], files={"a.smt2": SMT}),
    Host("minisat", ["sh", "-c", "minisat -verb=0 a.cnf; echo $?"], ["minisat"],
         files={"a.cnf": PIGEONS}),
    Host("glpk", ["sh", "-c", "for i in $(seq @N@); do glpsol --lp a.lp --tmlim 20 -o out.txt | "
                  "grep -c OPTIMAL; done"], ["glpk-utils"], n=10, files={"a.lp": LP}),
    Host("stockfish", ["sh", "-c", "stockfish bench 16 1 @N@ 2>&1 | grep 'Nodes searched'"],
         ["stockfish"], n=9),
    Host("gnugo", ["sh", "-c", "(for i in $(seq @N@); do echo genmove black; echo genmove white; "
                   "done; echo showboard) | gnugo --mode gtp --seed 1 --level 5 | md5sum"],
         ["gnugo"], n=12),
    Host("sysbench", ["sh", "-c", "sysbench cpu --threads=2 --time=0 --events=@N@ run | grep 'number "
                      "of events'; sysbench memory --threads=4 --memory-total-size=2G run | grep -c "
                      "Total"], ["sysbench"], n=2000),
    Host("busybox", ["busybox", "sh", "-c", "i=0; while [ $i -lt @N@ ]; do i=$((i + 1)); echo $i | "
                     "busybox awk '{ print $1 * 2 }' >/dev/null; done; busybox seq 50000 | busybox "
                     "sort -rn | busybox md5sum"], ["busybox"], n=60),
    Host("stress-ng", ["sh", "-c", "stress-ng --malloc 2 --malloc-ops @N@ --vm 1 --vm-bytes 20m "
                       "--vm-ops 500 --fork 1 --fork-ops 100 --quiet; echo $?"], ["stress-ng"],
         n=20000),
    # Machines, clusters, media, windows
    Host("qemu-system", ["sh", "-c", "timeout 60 qemu-system-i386 -display none -net none -serial stdio "
                         "-device isa-debug-exit,iobase=0x501,iosize=1 -drive "
                         "format=raw,file=a.img | md5sum"], ["qemu-system-x86", "nasm"],
         files={"a.asm": BOOT}, prepare="nasm -f bin a.asm -o a.img", n=2000, seconds=90),
    Host("openmpi", ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader",
                     "-np", "3", "sh", "-c", "for i in $(seq @N@); do echo $i | md5sum >/dev/null; done; "
                     "echo done"], ["openmpi-bin"], n=20, seconds=90),
    Host("gstreamer", ["gst-launch-1.0", "-q", "videotestsrc", "num-buffers=@N@", "!", "videoconvert",
                       "!", "theoraenc", "!", "oggmux", "!", "filesink", "location=a.ogg"],
         ["gstreamer1.0-tools", "gstreamer1.0-plugins-base"], n=30, ignored="a.ogg"),
    Host("gtk", ["xvfb-run", "-a", "/usr/bin/python3", "a.py"],
         ["python3-gi", "gir1.2-gtk-3.0", "xvfb", "xauth"], n=1500, files={"a.py": GTK}, seconds=90),
    Host("qt", ["xvfb-run", "-a", "/usr/bin/python3", "a.py"], ["python3-pyqt5", "xvfb", "xauth"],
         n=1500, files={"a.py": QT}, seconds=90),
    Host("wine", ["wine64", "cmd", "/c", "for /l %i in (1,1,@N@) do @echo line %i"], ["wine64"], n=30,
         prepare="wine64 wineboot -i >/dev/null 2>&1; wineserver -w", seconds=180,
         env={"WINEPREFIX": "/tmp/home/wine", "WINEDEBUG": "-all",
              "PATH": "/usr/lib/wine:/usr/bin:/bin:/usr/sbin"}),
]
for host in HOSTS:
    host.kind = "program"
