#!/usr/bin/python3 -B
"""self_test.py BUILD: that the checker of memlogs and the runner find what is wrong."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import compare
import hosts
import memlogs

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = "build"
GOOD = """# memlog 2
# program: /bin/app
# pid: 7
# seq: @SEQ@
# trigger: signal
# started: 2026-11-20T20:15:00.000000Z
# taken: 2026-11-20T20:15:31.123456Z
# delta: +30 bytes +1 blocks
# live: @LIVE@
# allocated: 100 bytes 9 blocks
# freed: @FREED@
# lost: frames=0 stacks=0 blocks=0 inflight=0
# region: resident=8192 size=8192 malloc
# region: resident=4096 size=8192 stack
+40\tblocks=+2\tlive=40\tallocs=3\tallocated=50\tfrees=1\tfreed=10\tstack=00000000000000aa
\tmain\tapp.c:3\t(/bin/app+0x12)
\t...
-10\tblocks=-1\tfrees=1\tfreed=10\tstack=00000000000000bb
\t(/bin/app+0x15)
@mmap\t+4096\tblocks=+1\tstack=00000000000000cc
\t(0x1234)
# module: /bin/app build-id=ab base=0x1000
# end
"""


def report(seq, live, freed):
    return GOOD.replace("@SEQ@", str(seq)).replace("@LIVE@", live).replace("@FREED@", freed)


FIRST = report(1, "30 bytes 1 blocks", "70 bytes 8 blocks")
SECOND = report(2, "60 bytes 2 blocks", "40 bytes 7 blocks")


class MemlogsTest(unittest.TestCase):
    def findings(self, **files):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in files.items():
                with open(os.path.join(directory, name.replace("_", "-").replace(
                        "-memlog", ".memlog")), "w", encoding="utf-8") as file:
                    file.write(text)
            return memlogs.check(directory)

    def wrong(self, text):
        """What is said of one file."""
        found = self.findings(app_7_1_memlog=text).wrong
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_good(self):
        findings = self.findings(app_7_1_memlog=FIRST, app_7_2_memlog=SECOND)
        self.assertEqual(findings.wrong, [])
        self.assertEqual((findings.reports, findings.series, findings.entries), (2, 1, 4))

    def test_each_damage_is_found(self):
        for old, new, said in (
                ("# end\n", "", "not complete"),
                ("# end\n", "# end\n# end\n", "no meta line"),
                ("# memlog 2", "# memlog 3", "does not begin"),
                ("+30 bytes", "+31 bytes", "entries sum to"),
                ("+1 blocks", "+2 blocks", "entries sum to"),
                ("allocs=3", "allocs=4", "are not the change"),
                ("freed=10\tstack=00000000000000aa", "freed=9\tstack=00000000000000aa",
                 "are not the change"),
                ("# freed: 70", "# freed: 71", "allocated less freed"),
                ("# seq: 1", "# seq: 3", "says that it is number 3"),
                ("# lost: frames=0 stacks=0 blocks=0 inflight=0\n", "", "has no '# lost:'"),
                ("\tmain", "main", "neither entry, frame nor meta line"),
                ("\t(/bin/app+0x15)", "\tmain app.c", "no frame"),
                ("\t(/bin/app+0x15)", "\t(/bin/app+0x15)\n\t^ tail=00000000000000aa", "tails"),
                ("-10\tblocks=-1\tfrees=1\tfreed=10", "+50\tblocks=+1\tallocs=1\tallocated=50",
                 "out of order")):
            with self.subTest(old=old, new=new):
                self.assertIn(old, FIRST)
                self.assertIn(said, self.wrong(FIRST.replace(old, new, 1)))

    def test_series(self):
        self.assertIn("report 1 is missing", self.findings(app_7_2_memlog=SECOND).wrong[0])
        other = report(2, "50 bytes 2 blocks", "50 bytes 7 blocks")
        self.assertIn("inherited plus all deltas",
                      self.findings(app_7_1_memlog=FIRST, app_7_2_memlog=other).wrong[0])
        inherited = SECOND.replace("# seq: 2", "# seq: 1").replace(
            "# delta", "# inherited: 30 bytes 1 blocks\n# delta")
        self.assertEqual(self.findings(app_8_1_memlog=inherited).wrong, [])

    def test_what_is_no_memlog_is_litter(self):
        findings = self.findings(app_7_1_memlog=FIRST, **{".x": "", "y": ""})
        self.assertEqual(findings.litter, [".x", "y"])


class TableTest(unittest.TestCase):
    """The hosts themselves."""

    def test_names_are_unique(self):
        names = [host.name for host in hosts.HOSTS]
        self.assertEqual(len(names), len(set(names)))

    def test_packages_of_quick_ones_are_those_of_the_tests(self):
        known = {"bash", "coreutils"}
        for path in ("packages.txt", "tests/packages.txt"):
            with open(os.path.join(HERE, "../..", path), encoding="utf-8") as file:
                known |= {line.split()[0] for line in file if line.strip() and line[0] != "#"}
        for host in hosts.HOSTS:
            if host.quick:
                self.assertEqual(set(host.packages) - known, set(), host.name)


class CompareTest(unittest.TestCase):
    def test_strictest_way_in_which_the_plain_runs_agree(self):
        differ = compare.lines_differ
        self.assertIsNone(differ(["a 1"], ["a 1"], ["a 1"]))
        self.assertIsNotNone(differ(["a 1"], ["a 1"], ["a 2"]))
        self.assertIsNone(differ(["a 1"], ["a 2"], ["a 3"]))
        self.assertIsNotNone(differ(["a 1"], ["a 2"], ["b 3"]))
        self.assertIsNone(differ(["a 1", "b 2"], ["b 1", "a 2"], ["a 5", "b 5"]))
        self.assertIsNotNone(differ(["a", "x"], ["a", "y"], ["z"]))
        self.assertIsNone(differ(["a", "x"], ["a", "y"], ["z", "a"]))
        self.assertIsNotNone(differ(["a", "x"], ["a", "y"], ["a", "libmtrace.so"]))

    def test_lines_of_ours(self):
        self.assertEqual(compare.split_said(["mtrace: x", "y"]), (["y"], ["mtrace: x"]))


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.done = subprocess.run(
            [os.path.join(HERE, "run.py"), "--build", BUILD, "--output", cls.place.name,
             "--phases", "preloaded", "--quick", "--table", os.path.join(HERE, "cheats.py")],
            capture_output=True, text=True)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def row(self, name):
        with open(os.path.join(self.place.name, "results", f"{name}.json"),
                  encoding="utf-8") as file:
            return json.load(file)

    def expect(self, name, state, *reasons):
        row = self.row(name)
        self.assertEqual(row["state"], state, row["reasons"])
        for reason in reasons:
            self.assertTrue(any(reason in one for one in row["reasons"]),
                            f"{reason!r} is not in {row['reasons']}")

    def test_status(self):
        self.assertEqual(self.done.returncode, 1, self.done.stdout + self.done.stderr)
        self.assertEqual(self.done.stderr, "")

    def test_good_ones(self):
        self.expect("good", "ok")
        self.expect("differs", "ok")

    def test_each_difference_is_a_reason(self):
        self.expect("many", "hurt", "status exit 3 instead of exit 0", "host.out: 1 lines more",
                    "host.err: 1 lines more", "names of files", "x-1-1.memlog: entries sum to",
                    "1 beside the memlogs: .memlog-abcdef", "1 in /dev/shm: left/x.ledger",
                    "processes: {'sleep': 1}")

    def test_ends(self):
        self.expect("killed", "hurt", "status signal 9 instead of exit 0")
        self.expect("hangs", "hurt", "time-out")
        self.expect("eats", "hurt", "more than 150 MiB of memory")
        self.expect("deaf", "hurt", "did not end in")

    def test_never_passed(self):
        self.expect("absent", "not installed", "no-such-package-of-debian")
        self.expect("never", "not run", "plain: exit 7")
        self.expect("missing", "not run", "/no/such/program")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = sys.argv.pop(1)
    unittest.main()
