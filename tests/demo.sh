#!/bin/bash
# demo.sh BUILD: a service with a planted leak runs under libmtrace.so, is signalled between phases
# of work, and the last memlog names the leak. Status 1, and a line that says why, when it does not.
set -u
build=$(cd "$1" && pwd) || exit 1
service=$build/tests/programs/demo_service
reports=$build/demo
rm -rf "$reports"
mkdir -p "$reports" || exit 1

fail() {
  echo "demo: $*" >&2
  exit 1
}

# Commands go to the service by one pipe, its answers come back by another. The library is named from
# its directory: the loader would part a path with a space.
coproc SERVICE { cd "$build" && exec env LD_PRELOAD=./libmtrace.so MTRACE_OUTPUT="$reports" "$service"; }
pid=$SERVICE_PID
trap 'kill "$pid" 2>/dev/null' EXIT
input=${SERVICE[1]} output=${SERVICE[0]}

request() {
  echo "run $1 $2" >&"$input" || fail "the service does not listen"
  local answer
  read -r answer <&"$output" || fail "the service has ended"
  [ "$answer" = done ] || fail "the service answered: $answer"
}
all_kinds() {
  request login 200
  request search 500
  request upload 100
  request export 100
  request logout 200
}
# The user's `killall -USR1`; the path of the named report comes back.
report() { "$build/memlog" report --label "$1" "$pid"; }

echo "\$ LD_PRELOAD=build/libmtrace.so MTRACE_OUTPUT=build/demo demo_service &    # pid $pid"
all_kinds
first=$(report warm-up) || fail "no report after the warm-up"
echo "after the warm-up:                 ${first#"$build"/}"
all_kinds
second=$(report phase) || fail "no report after the phase"
echo "after a phase of the same work:    ${second#"$build"/}"
echo quit >&"$input"
wait "$pid"
status=$?
trap - EXIT
[ $status -eq 0 ] || fail "the service ended with status $status"

echo
echo "\$ memlog show -n 3 $(basename "$second")"
"$build/memlog" show -n 3 "$second" || fail "memlog show"

# The planted leak: 100 uploads of 64 x 64 bytes, made in make_thumbnail, at the line marked LEAK.
source=$(cd "$(dirname "$0")" && pwd)/programs/demo_service.cc
line=$(grep -n '// LEAK$' "$source" | cut -d: -f1)
entry=$(awk '/^[+-]/ { n++ } n == 1 && !/^# /' "$second")
[[ $entry == "+409600"$'\t'"blocks=+100"* ]] || fail "the first entry is not the leak of 409,600 bytes"
[[ $entry == *make_thumbnail*demo_service.cc:$line* ]] ||
  fail "the first entry does not name make_thumbnail at demo_service.cc:$line"
echo
echo "The planted leak (make_thumbnail, demo_service.cc:$line) is the first entry."
