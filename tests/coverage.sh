#!/bin/bash
# coverage.sh BUILD MAKE: builds the unit tests with counters in BUILD-coverage, runs them beside the
# programs of BUILD and writes BUILD-coverage/coverage/index.html; prints the share of all lines, then
# where the page is. Run by make coverage.
set -eu -o pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build_dir=$(cd "$1" && pwd)
coverage_dir=$build_dir-coverage
binaries=("$1-coverage/tests/unit_library" "$1-coverage/tests/unit_tool")
$2 --no-print-directory BUILD="$1-coverage" COVERAGE=1 OPT='-O0 -g' "${binaries[@]}"
mkdir -p "$coverage_dir/coverage"
for binary in "${binaries[@]}"; do
  MTRACE_SOURCE_DIR=$source_dir MTRACE_BUILD_DIR=$build_dir \
      setsid env --default-signal=HUP,INT,QUIT "$source_dir/$binary" --gtest_brief=1 </dev/null ||
      echo "$binary: some tests failed"
done
cd "$source_dir"
# gcov writes negative counts of some branches, which gcovr takes for damage.
gcovr --root . --filter 'src/' --object-directory "$coverage_dir" --exclude-throw-branches \
    --gcov-ignore-parse-errors --html-details "$coverage_dir/coverage/index.html" \
    --print-summary "$coverage_dir" | tail -3
echo "$coverage_dir/coverage/index.html"
