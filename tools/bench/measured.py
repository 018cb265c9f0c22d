"""measured.py: puts what was measured between the two lines of a document that say who writes it."""
import re
import sys


def replace(path, text):
    with open(path, encoding="utf-8") as file:
        parts = re.fullmatch(r"(.*<!-- \w+: written by [^\n]* -->\n).*(<!-- \w+: end -->.*)",
                             file.read(), re.DOTALL)
    if not parts:
        sys.exit(f"{path}: has no two lines that say what is written there")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{parts[1]}\n{text}{parts[2]}")
