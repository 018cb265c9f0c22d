#!/bin/bash
# emulated.sh BUILD MAKE EMULATOR: builds the library, its unit tests and the programs under test for aarch64 in
# BUILD-aarch64, and runs them under EMULATOR with BUILD's memlog and host tests. Run by make check-aarch64.
set -eu
cd "$(dirname "$0")/.."
there=$1-aarch64
$2 --no-print-directory ARCH=aarch64 BUILD="$there" programs \
    "$there"/{libmtrace.so,tests/unit_library,tests/programs/walkcheck.so,tests/unwind/libplug_{small,large}.so}
listed() { sed '/^#/d' "$1" | paste -sd:; }
MTRACE_SOURCE_DIR=$PWD MTRACE_BUILD_DIR=$(realpath "$there") "$3" "$there/tests/unit_library" --gtest_brief=1 \
    --gtest_filter="-$(listed tests/unit/library/not_emulated.txt)"
MTRACE_TARGET_DIR=$(realpath "$there") MTRACE_EMULATOR=$3 \
    GTEST_FILTER=$(listed tests/host/emulated.txt | sed 's/:-/-/') tests/run_tests.sh "$1" "$1/tests/host_tests"
