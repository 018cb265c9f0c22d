#!/bin/bash
# make_bug.sh NAME DIRECTORY: the source with the bug called NAME in bugs.txt, below DIRECTORY.
set -eu
here=$(dirname "$0")
line=$(grep "^$1|" "$here/bugs.txt")
IFS='|' read -r _ _ file expression <<< "$line"
rm -rf "$2"  # a copy of a file that has another name by now would stand in its place
mkdir -p "$2/$(dirname "$file")"
# The expression may hold the separator of the fields; read leaves it alone in the last one.
sed "$expression" "$here/../../src/libmtrace/$file" > "$2/$file"
if cmp -s "$here/../../src/libmtrace/$file" "$2/$file"; then
  echo "bug $1 changes nothing in $file" >&2
  exit 1
fi
