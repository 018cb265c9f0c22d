#!/bin/bash
# run.sh BUILD --seconds N|--runs N TARGET...: runs fuzz targets, one after the other, over the
# seeds in corpus/TARGET and what earlier runs found, and prints a line for each: executions, their
# rate, edges covered. Ends with status 1 and the path of the input when one fails.
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$1 limit=$2 amount=$3
shift 3
case $limit in
  --seconds) limits=(-max_total_time="$amount") ;;
  # The same inputs each time.
  --runs) limits=(-runs="$amount" -seed=1) ;;
  *) echo "usage: run.sh BUILD --seconds N|--runs N TARGET..." >&2; exit 2 ;;
esac
export FUZZ_SYSROOT=$here/corpus/elf
unset LD_PRELOAD DEBUGINFOD_URLS
export ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1

status=0
for target in "$@"; do
  log=$build/$target.log
  found=$build/found/$target
  mkdir -p "$found" "$build/failed"
  seeds=("$here/corpus/$target")
  # A short run is the same everywhere: without what other runs have found, and it keeps nothing.
  [ "$limit" = --seconds ] && seeds=("$found" "${seeds[@]}")
  dictionary=()
  [ -e "$here/$target.dict" ] && dictionary=(-dict="$here/$target.dict")
  if [ "$limit" = --runs ]; then
    scratch=$(mktemp -d) && cp "${seeds[@]/%//.}"/* "$scratch" && seeds=("$scratch")
  fi
  "$build/$target" "${seeds[@]}" "${limits[@]}" "${dictionary[@]}" -timeout=10 -rss_limit_mb=1024 \
      -max_len=65536 -artifact_prefix="$build/failed/$target-" -print_final_stats=1 >"$log" 2>&1
  result=$?
  [ "$limit" = --runs ] && rm -rf "$scratch"
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
  edges=$(sed -n 's/.*cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  seeds_read=$(find "$here/corpus/$target" -type f | wc -l)
  if [ $result -ne 0 ]; then
    echo "$target: FAILED, see $log"
    grep -E '^(==|SUMMARY|Test unit|artifact)|ERROR|runtime error' "$log" | head -5
    status=1
  else
    echo "$target: $runs executions, $rate a second, $edges edges, $seeds_read seeds"
  fi
done
exit $status
