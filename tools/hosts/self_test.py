#!/usr/bin/python3 -B
"""self_test.py BUILD: that the runner finds what is wrong."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import compare
import hosts

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = "build"


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
                    "host.err: 1 lines more", "names of files", "x-1-1.memlog:11: bad stack=1",
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
