#!/bin/bash
# bench.sh BUILD: what tracing costs for a malloc+free pair, 12 calls deep, 10 frames kept.
#
# Time: each contender in turn, ROUNDS times (default 7), medians; only the ratios within one run
# mean anything on a shared machine. Instructions: counted by valgrind's callgrind, which repeats.
# LeakSanitizer walks by frame pointers, which this program has not: it keeps fewer frames here.
set -u
build=$(cd "$1" && pwd) || exit 1
program=$build/tests/programs/bench_pairs
pairs=${PAIRS:-2000000}
rounds=${ROUNDS:-7}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mtrace-bench-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT

declare -A preload environment
names=(base mtrace)
preload[base]=
preload[mtrace]=$build/libmtrace.so
environment[base]=
environment[mtrace]="MTRACE_OUTPUT=$scratch MTRACE_RESOLVER=none MTRACE_DEPTH=10"
heaptrack=$(ls /usr/lib/heaptrack/libheaptrack_preload.so \
               /usr/lib/x86_64-linux-gnu/heaptrack/libheaptrack_preload.so 2>/dev/null | head -1)
if [ -n "$heaptrack" ]; then
  names+=(heaptrack)
  preload[heaptrack]=$heaptrack
  environment[heaptrack]="DUMP_HEAPTRACK_OUTPUT=/dev/null"
fi
lsan=$(gcc -print-file-name=liblsan.so)
if [ "${lsan:0:1}" = / ]; then
  names+=(LeakSanitizer)
  preload[LeakSanitizer]=$lsan
  environment[LeakSanitizer]="LSAN_OPTIONS=detect_leaks=0:fast_unwind_on_malloc=1"
fi

# run NAME COMMAND...: under the contender.
run() {
  local name=$1
  shift
  # shellcheck disable=SC2086 # the environment is several words
  env ${environment[$name]} ${preload[$name]:+LD_PRELOAD=${preload[$name]}} "$@"
}

for threads in 1 2; do
  for ((round = 0; round < rounds; ++round)); do
    for name in "${names[@]}"; do
      run "$name" "$program" "$pairs" "$threads" >>"$scratch/$name.$threads" 2>"$scratch/error" || {
        echo "$name: $(head -1 "$scratch/error")" >&2
        exit 1
      }
    done
  done
done
median() { sort -g "$1" | sed -n "$(((rounds + 1) / 2))p"; }

printf '%-16s %12s %8s %14s %8s\n' '' '1 thread' ratio '2 threads' ratio
for name in "${names[@]}"; do
  line=("$name")
  for threads in 1 2; do
    line+=("$(median "$scratch/$name.$threads") ns")
    line+=("$(awk "BEGIN { printf \"%.1f\", $(median "$scratch/$name.$threads") / \
                           $(median "$scratch/base.$threads") }")")
  done
  printf '%-16s %12s %8s %14s %8s\n' "${line[@]}"
done

# Two lengths, so that starting and ending do not count.
instructions() {
  run "$1" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$2" 2>&1 >/dev/null |
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}
command -v valgrind >/dev/null || exit 0
echo
for name in base mtrace; do
  few=$(instructions "$name" 10000)
  many=$(instructions "$name" 60000)
  if [ -z "$few" ] || [ -z "$many" ]; then
    echo "$name: callgrind gave no count" >&2
    exit 1
  fi
  printf '%-16s %6d instructions a pair\n' "$name" $(((many - few) / 50000))
done
