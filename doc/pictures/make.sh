#!/bin/bash
# make.sh [BUILD]: makes the pictures in this directory again, and the samples of output in documents.
# redis-server runs under the library, is given work in rounds and asked for a report after each: a
# queue that nobody reads grows, and users are deleted in the middle.
set -eu
build=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null || true; rm -rf "$scratch"' EXIT
cd "$scratch"

cp "$(readlink -f "$(command -v redis-server)")" redis-server  # the link leads to another name
ln -s "$build/libmtrace.so" .  # the loader would part a path with a space
LD_PRELOAD=./libmtrace.so MTRACE_OUTPUT=$scratch MTRACE_DEPTH=40 \
    ./redis-server --port 0 --unixsocket socket --save '' --latency-tracking no >log &
server=$!
until [ -S socket ]; do sleep 0.1; done

# work COUNT COMMAND: with # for 1 to COUNT.
work() {
  seq "$1" | awk -v command="$2" '{ text = command; gsub(/#/, $1, text); print text }' |
      redis-cli -s socket --pipe >/dev/null
}
value=$(printf 'x%.0s' {1..150})
report() { "$build/memlog" report --label "$1" "$server" >/dev/null; }

report start
work 12000 "HSET user:# name name-# mail user-#@example.org"
work 4000 "SET session:# $value"
work 2000 "SADD tag:news item-#"
report loaded
for round in 1 2 3 4 5; do
  sleep 1
  work 8000 "LPUSH queue $round-#-$value"
  work 600 "ZADD scores # player-$round-#"
  [ $round -ne 3 ] || work 9000 "UNLINK user:#"
  report round-$round
done
kill "$server"
wait "$server" || true

reports=(redis-server-"$server"-?.memlog)
"$build/memlog" resolve "${reports[@]}"
"$build/memlog" export -f flamegraph -o "$here/live.svg" "${reports[@]:0:3}"
"$build/memlog" export -f flamegraph --base "${reports[2]}" -o "$here/grew.svg" \
    "${reports[6]}"
"$build/memlog" export -f html -o page.html "${reports[@]:0:7}"
NODE_PATH=$build/npm/node_modules node "$here/shoot.cjs" "$scratch/page.html" "$here"
ls -l "$here"/*.svg "$here"/*.png
"$here/samples.py" "$build" "$here/../../README.md" "$here/../../index.html"
