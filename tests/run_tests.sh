#!/bin/bash
# run_tests.sh BUILD BINARY...: runs GoogleTest binaries, TEST_JOBS pieces at a time (two a processor,
# since half of their time is waiting), prints what failed, and ends with the line
# "N passed, N failed". Status 1 when anything failed or nothing ran.
# GTEST_FILTER in the environment chooses tests, as for a single binary.
set -u
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build_dir=$(cd "$1" && pwd) || exit 1
shift

# The loader parts LD_PRELOAD at spaces and colons, and knows no way to quote them.
is_parted() { [[ $1 == *[[:space:]:]* ]]; }
place=${TMPDIR:-/tmp}
is_parted "$place" && place=/tmp
scratch=$(mktemp -d "$place/mtrace-check-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/tmp" "$scratch/logs"
chmod 711 "$scratch" "$scratch/tmp"  # some tests run programs as another user
# A build in such a place is tried as it would be installed: elsewhere. Links to the same files where
# the file system allows; symbolic links would not do, since memlog looks where it really is.
tried_dir=$build_dir
if is_parted "$build_dir"; then
  tried_dir=$scratch/build
  echo "testing a copy of the build in $tried_dir: the loader parts LD_PRELOAD at spaces and colons"
  mkdir "$tried_dir"
  cp -al "$build_dir/." "$tried_dir" 2>/dev/null || cp -a "$build_dir/." "$tried_dir" || exit 1
fi
# Where memlog run keeps ledgers: those of killed programs stay there.
export XDG_RUNTIME_DIR=$scratch/tmp
export MTRACE_SOURCE_DIR=$source_dir MTRACE_BUILD_DIR=$tried_dir TMPDIR=$scratch/tmp
unset LD_PRELOAD DEBUGINFOD_URLS

jobs=${TEST_JOBS:-$((2 * $(nproc)))}
# A piece is a number, a binary and a filter: the tests of a suite, which set up things together, or a
# transcript, which is as long as a suite.
pieces=()
for binary in "$@"; do
  # A binary that cannot say is run, and counts as a failure.
  listed=$("$binary" --gtest_list_tests) || listed=$'*.\n *'
  while read -r filter; do pieces+=("${#pieces[@]} $binary $filter"); done < <(awk '
    /^[^ ]+\.( |$)/ { if (text != "") print text; suite = $1; text = "" }
    /^ / && suite ~ /\/Transcript\./ { print suite $1; next }
    /^ / { text = text (text == "" ? "" : ":") suite $1 }
    END { if (text != "") print text }' <<< "$listed")
done

run_piece() {
  read -r number binary filter <<< "$1"
  local log=$scratch/logs/$number
  # The limit only ends a hang; a piece takes seconds.
  # Started in the background, a shell ignores SIGINT: the programs under test must not.
  timeout -k 10 1200 env --default-signal=HUP,INT,QUIT "$binary" --gtest_color=no \
      --gtest_filter="$filter" >"$log" 2>&1
  echo $? >"$log.status"
}
export -f run_piece
export scratch
printf '%s\n' "${pieces[@]}" | xargs -d '\n' -P "$jobs" -I{} bash -c 'run_piece "{}"'

# A skip for a reason that tests/skips.txt does not have is a failure.
grep -v '^#' "$source_dir/tests/skips.txt" >"$scratch/skips"
passed=0 failed=0 skipped=0
for piece in "${pieces[@]}"; do
  read -r number binary filter <<< "$piece"
  log=$scratch/logs/$number
  status=$(cat "$log.status" 2>/dev/null || echo none)
  good=$(grep -c '^\[       OK \]' "$log")
  bad=$(grep -c '^\[  FAILED  \] .* ([0-9]* ms)$' "$log")
  skip=$(grep -c '^\[  SKIPPED \] .* ([0-9]* ms)$' "$log")
  for test in $(sed -n 's/^\[  SKIPPED \] \(.*\) ([0-9]* ms)$/\1/p' "$log"); do
    sed -n "/^\[ RUN      \] ${test//\//\\/}\$/,/^\[  SKIPPED \]/p" "$log" | grep -qFf "$scratch/skips" && continue
    echo "$test was skipped for a reason that is not in tests/skips.txt:"
    bad=$((bad + 1)) skip=$((skip - 1))
  done
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skip))
  # Each failed test from its RUN line to its end.
  awk '/^\[ RUN      \]/ { text = "" } { text = text $0 "\n" }
       /^\[  FAILED  \] .* \([0-9]+ ms\)$/ { printf "%s", text }
       /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { printf "%s", text }' "$log"
  if ! grep -q '^\[==========\] .* ran\.' "$log" || { [ "$status" != 0 ] && [ "$bad" = 0 ]; }; then
    # It did not come to its end: the test under way and those after it count as one failure.
    failed=$((failed + 1))
    echo "$(basename "$binary") ${filter%%.*} ended with status $status in:"
    awk '/^\[ RUN      \]/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' \
        "$log" | tail -40
  fi
done

# Tests and suites by the time they took.
sed -nE 's/^\[(       OK |  FAILED  )\] (.*) \(([0-9]+) ms\)$/\3 \2/p' "$scratch"/logs/* | sort -rn >"$scratch/tests"
awk '{ sub(/\.[^.]*$/, "", $2); sum[$2] += $1 } END { for (suite in sum) print sum[suite], suite }' \
    "$scratch/tests" | sort -rn >"$scratch/suites"
awk '{ printf "%9.1f s  %s\n", $1 / 1000, $2 }' "$scratch/suites" >"$build_dir/tests/times"
echo "slowest tests, and suites (all: $build_dir/tests/times):"
paste -d ' ' <(head -n 10 "$scratch/tests") <(head -n 10 "$scratch/suites") |
    awk '{ printf "%7.1f s  %-70s %7.1f s  %s\n", $1 / 1000, $2, $3 / 1000, $4 }'
summary="$passed passed, $failed failed"
[ "$skipped" -gt 0 ] && echo "$skipped skipped, each for a reason of tests/skips.txt"
# .ci/run looks whether it came to this.
echo "$summary" | tee "$build_dir/tests/summary"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
