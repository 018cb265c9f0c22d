#!/bin/bash
# find_bugs.sh BUILD: runs each bug of bugs.txt in its scenario; status 1 if one is not found.
set -u
here=$(dirname "$0")
status=0
while IFS='|' read -r name scenario _; do
  case $name in ''|'#'*) continue ;; esac
  # A bug may also end in a fault.
  # shellcheck disable=SC2086  # "--arm" and the name
  out=$(timeout 120 "$1/bugs/$name/scenarios" --bound 3 --orders 200000 $scenario 2>&1)
  result=$?
  if [ $result -eq 0 ] || [ $result -eq 124 ] || [ $result -eq 2 ]; then
    echo "$name: NOT FOUND: $out"
    status=1
  else
    [ $result -gt 128 ] && out="${scenario#--arm }: FAILED: a fault"
    echo "$name: $(grep FAILED <<< "$out")"
  fi
done < "$here/bugs.txt"
exit $status
