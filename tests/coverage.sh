#!/bin/bash
# coverage.sh BUILD COVERAGE_BUILD BINARY...: runs unit tests of COVERAGE_BUILD beside the programs of
# BUILD and writes COVERAGE_BUILD/coverage/index.html; prints the share of all lines, then where the
# page is.
set -eu -o pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
build_dir=$(cd "$1" && pwd)
coverage_dir=$(cd "$2" && pwd)
shift 2
mkdir -p "$coverage_dir/coverage"
for binary in "$@"; do
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
