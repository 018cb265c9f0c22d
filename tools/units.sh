#!/bin/bash
# units.sh DIRECTORY N SOURCE...: for each N sources writes a file that includes them, below DIRECTORY and
# with the name of the first, and prints where they are. A file that is right already stays untouched.
set -eu
directory=$1 most=$2
shift 2
file= text= count=0
flush() {
  [ -n "$text" ] || return 0
  mkdir -p "${file%/*}"
  [ "$text" = "$(cat "$file" 2>/dev/null)"$'\n' ] || printf %s "$text" >"$file"
  echo "$file"
  text= count=0
}
for source in "$@"; do
  if [ $count = "$most" ]; then flush; fi
  [ $count != 0 ] || file=$directory/$source
  count=$((count + 1))
  text+="#include \"$source\""$'\n'
done
flush
