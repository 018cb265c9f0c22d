"""What programs are run under: nothing, libmtrace, heaptrack, LeakSanitizer."""
import os
import subprocess
from dataclasses import dataclass, field


@dataclass
class Contender:
    name: str
    preload: list = field(default_factory=list)
    environment: dict = field(default_factory=dict)  # {out}: where it writes, {depth}: frames
    frame_pointers: bool = False  # runs the build with frame pointers of our own program
    against: str = "base"         # what its figures are compared with
    version: str = ""
    how: str = ""                 # for the reader

    def variables(self, out, depth):
        """Its environment, as NAME=VALUE."""
        lines = [f"{name}={value.format(out=out, depth=depth)}"
                 for name, value in self.environment.items()]
        if self.preload:
            lines.append("LD_PRELOAD=" + ":".join(self.preload))
        return lines


def package_version(package):
    return output_of(["dpkg-query", "-W", "-f=${Version}", package]) or "unknown"


def mtrace(build, name, how, **more):
    environment = {"MTRACE_OUTPUT": "{out}", "MTRACE_RESOLVER": "none", "MTRACE_DEPTH": "{depth}"}
    environment.update(more)
    environment = {key: value for key, value in environment.items() if value is not None}
    return Contender(name, [os.path.join(build, "libmtrace.so")], environment, how=how)


def heaptrack():
    for place in ("/usr/lib/heaptrack", "/usr/lib/x86_64-linux-gnu/heaptrack"):
        path = place + "/libheaptrack_preload.so"
        if os.path.exists(path):
            return Contender(
                "heaptrack", [path], {"DUMP_HEAPTRACK_OUTPUT": "{out}/heaptrack.raw"},
                version=package_version("heaptrack"),
                how="libheaptrack_preload.so writes its raw data to a file; without the "
                    "interpreter and the compression that the heaptrack command runs beside it. "
                    "Follows no child processes. Up to 64 frames.")
    return None


def leak_sanitizer(build):
    path = output_of(["gcc", "-print-file-name=liblsan.so"])
    if not path.startswith("/"):
        return None
    return Contender(
        "LeakSanitizer", [os.path.join(build, "tools/bench/lsan_signals.so"), path],
        {"LSAN_OPTIONS": "detect_leaks=0:malloc_context_size={depth}:log_path={out}/lsan"},
        frame_pointers=True, against="base with frame pointers",
        version=package_version("liblsan0"),
        how="GCC's liblsan, preloaded; detect_leaks=0: it records every allocation and looks for "
            "no leaks at the end. It follows frame pointers only: our own program is built with "
            "them for it, other programs are as they are, and their stacks then short or wrong.")


def output_of(words):
    """Of a command that may not be there, or fail."""
    try:
        return subprocess.run(words, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout.strip()
    except OSError:
        return ""


def own_version(build):
    version = output_of([os.path.join(build, "memlog"), "--version"]).replace("memlog ", "")
    commit = output_of(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse",
                        "--short", "HEAD"])
    return f"{version} ({commit})" if commit else version


def find(build):
    """All that are installed, and lines about those that are not."""
    contenders = [
        Contender("base", how="nothing preloaded"),
        Contender("base with frame pointers", frame_pointers=True,
                  how="our own program, built with frame pointers"),
        mtrace(build, "libmtrace",
               "10 frames a stack unless the program's name says otherwise; with a report at exit, "
               "without names"),
        mtrace(build, "libmtrace with frame pointers",
               "the same with our own program built with frame pointers"),
        mtrace(build, "libmtrace, 10 frames", "with MTRACE_DEPTH=10 where the others keep 32 frames",
               MTRACE_DEPTH="10"),
        mtrace(build, "libmtrace, no report", "without the report at exit", MTRACE_EXIT_REPORT="0"),
        mtrace(build, "libmtrace, sampled", "with MTRACE_SAMPLE=512K", MTRACE_SAMPLE="512K"),
        mtrace(build, "libmtrace, names", "with names in the report at exit",
               MTRACE_RESOLVER=None, MTRACE_EXIT_WAIT="60"),
    ]
    for contender in contenders:
        if contender.name.startswith("libmtrace"):
            contender.version = own_version(build)
        if contender.name == "libmtrace with frame pointers":
            contender.frame_pointers = True
            contender.against = "base with frame pointers"
    missing = []
    for name, contender in (("heaptrack", heaptrack()), ("LeakSanitizer", leak_sanitizer(build))):
        if contender is None:
            missing.append(f"{name} is not installed")
        else:
            contenders.append(contender)
    return {contender.name: contender for contender in contenders}, missing
