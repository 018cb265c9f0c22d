#!/usr/bin/python3 -B
"""document.py: writes the table of hosts in doc/internals/notebook/hosts.md from the results of run.py.

What stands outside the two marked lines is written by hand and stays.
"""
import argparse
import json
import os
import sys

import hosts

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
import measured

HEAD = ("host", "version", "plain", "preloaded", "reports", "attached", "run --every", "memlogs",
        "outcome")


def plain_text(text, most=160):
    """Text that stands in a cell."""
    text = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return text if len(text) <= most else text[:most] + "..."


def cell(row, phase):
    """How many times as long as the slower plain run, and what memlog did meanwhile."""
    result = row["phases"].get(phase)
    if not result or not result.get("seconds"):
        return ""
    text = f"{result['seconds'] / max(max(row['plain']), 0.01):.1f}"
    verb = {"reports": "report", "attached": "attach"}.get(phase)
    if verb:
        text += f" ({result['memlog'].get(verb, {}).get('good', 0)})"
    return text


def summary(reasons):
    """The first reason of each run, and the runs that have the same one."""
    runs, found = {}, {}
    for reason in reasons:
        run, colon, text = reason.partition(": ")
        if not colon:
            run, text = "", reason
        if run not in runs:
            runs[run] = text
            found.setdefault(text, []).append(run)
    return [", ".join(names) + ": " + text if any(names) else text
            for text, names in found.items()]


def line(row):
    phases = row["phases"].values()
    cells = [row["name"], row["version"],
             f"{max(row['plain']):.1f} s" if "plain" in row else ""]
    cells += [cell(row, phase) for phase in ("preloaded", "reports", "attached", "run")]
    cells.append(str(sum(result["reports"] for result in phases)) if phases else "")
    outcome = row["state"]
    if row["reasons"]:
        outcome += ": " + "; ".join(plain_text(reason) for reason in summary(row["reasons"])[:3])
    cells.append(outcome)
    return "| " + " | ".join(cells) + " |\n"


def others(rows):
    """The hosts without a row of their own, by reason; they never count as passed."""
    found = {}
    for row in rows:
        if not row["phases"]:
            reason = row["state"].capitalize()
            if row["state"] != "not installed" and row["reasons"]:
                reason += ", " + plain_text(row["reasons"][0])
            found.setdefault(reason, []).append(row["name"])
    return found


def table(rows):
    states = {}
    for row in rows:
        states[row["state"]] = states.get(row["state"], 0) + 1
    asked = {verb: sum(result["memlog"].get(verb, {}).get("good", 0) for row in rows
                       for result in row["phases"].values())
             for verb in ("report", "attach", "detach")}
    memlogs = sum(result["reports"] for row in rows for result in row["phases"].values())
    entries = sum(result["entries"] for row in rows for result in row["phases"].values())
    wrong = sum(len(result["wrong"]) for row in rows for result in row["phases"].values())
    dates = sorted({row["date"] for row in rows})
    text = (f"{len(rows)} hosts: " + ", ".join(f"{count} {state}" for state, count in
                                               sorted(states.items(), key=lambda one: -one[1])) +
            f". {memlogs:,} memlogs with {entries:,} entries, {wrong} of them wrong; memlog report "
            f"succeeded {asked['report']:,} times, attach {asked['attach']:,}, detach "
            f"{asked['detach']:,}. Run on {' to '.join(dict.fromkeys((dates[0], dates[-1])))}.\n\n")
    ran = [row for row in rows if row["phases"]]
    for kind in dict.fromkeys(row["kind"] for row in ran):
        text += f"**{kind.capitalize()}s**\n\n| " + " | ".join(HEAD) + " |\n| --- | --- |" + \
            " ---: |" * 6 + " --- |\n"
        text += "".join(line(row) for row in ran if row["kind"] == kind) + "\n"
    for reason, names in others(rows).items():
        text += f"{reason}: {', '.join(names)}.\n\n"
    return text


def read_rows(directory):
    rows = []
    for host in hosts.HOSTS:
        try:
            with open(os.path.join(directory, f"{host.name}.json"), encoding="utf-8") as file:
                rows.append(json.load(file))
        except (OSError, ValueError):
            rows.append({"name": host.name, "kind": host.kind, "version": "", "phases": {},
                         "state": "not run", "reasons": ["no result"], "date": "-"})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", default="build/hosts/results", help="a directory of run.py")
    parser.add_argument("--document", default="doc/internals/notebook/hosts.md")
    arguments = parser.parse_args()
    rows = read_rows(arguments.results)
    if all(row["date"] == "-" for row in rows):
        print(f"{arguments.results}: no results", file=sys.stderr)
        return 1
    for row in rows:
        if row["date"] == "-":
            row["date"] = max(row["date"] for row in rows)
    measured.replace(arguments.document, table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
