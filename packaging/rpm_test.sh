#!/bin/bash
# rpm_test.sh [BUILD]: looks into the package that make rpm has made in BUILD (build), installs it below it, in
# a root with a database of its own, runs it there and removes it. Says "ok" and exits 0, or says what is
# wrong and exits 1.
set -eu -o pipefail
build=${1:-build}
package=$(realpath "$build"/mtrace-*.rpm)
rm -rf "$build/rpm-test"
mkdir -p "$build/rpm-test/root/tmp"
root=$(realpath "$build/rpm-test/root")
trap 'rm -rf "$root"' EXIT
wrong() { echo "rpm-test: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || wrong "chroot needs root"
# On Debian rpm says each time that alien is meant to install packages.
query() { rpm --dbpath /var/lib/rpm --root "$root" "$@" 2> >(grep -v '^rpm: ' >&2); }

rpm -K --nosignature "$package" >/dev/null || wrong "its digests are wrong"
files=$(rpm -qpl "$package")
for file in /usr/bin/memlog /usr/lib64/libmtrace.so /usr/lib64/mtrace/memlog-replay /usr/share/man/man1/memlog.1.gz; do
  grep -qx "$file" <<<"$files" || wrong "lacks $file"
done
# What RHEL 8 has: glibc 2.28, and nothing else.
requires=$(rpm -qp --requires "$package")
! grep -vE '^(libc\.so\.6|ld-linux-x86-64\.so\.2|rtld\(GNU_HASH\)|rpmlib\()' <<<"$requires" || wrong "requires more than libc"
newest=$(grep -o 'GLIBC_[0-9.]*' <<<"$requires" | sort -uV | tail -n 1)
[ "$(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -n 1)" = GLIBC_2.28 ] || wrong "requires $newest"

query --initdb
query -i --nodeps --ignorearch "$package" || wrong "cannot be installed"
[ "$(query -q --qf '%{NAME} %{VERSION}' mtrace)" = "mtrace $(rpm -qp --qf '%{VERSION}' "$package")" ] || wrong "is not in the database"
query -V --nodeps mtrace || wrong "differs from what was packed"
cp "$(dirname "$0")/../tests/golden/app-4711-1.memlog" "$root/tmp"
[[ $(chroot "$root" /usr/bin/memlog show /tmp/app-4711-1.memlog) == *stack=* ]] || wrong "memlog show fails"
query -e mtrace || wrong "cannot be removed"
left=$(find "$root/usr" -name '*mtrace*' -o -name '*memlog*')
[ -z "$left" ] || wrong "left behind: $left"
echo "rpm-test: ok"
