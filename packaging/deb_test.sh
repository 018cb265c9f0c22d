#!/bin/bash
# deb_test.sh [BUILD]: installs the packages that make deb has made in BUILD (build) in a new root below it,
# uses them there as packaging/deb_tests does, and removes them. Says "ok" and exits 0, or says what is
# wrong and exits 1.
set -eu
directory=${1:-build}/deb-test
root=$directory/root
set -- "${1:-build}"/*mtrace*.deb
[ "$(id -u)" = 0 ] || { echo "deb-test: debootstrap needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "deb-test: install debootstrap" >&2; exit 1; }

wrong() { echo "deb-test: $*" >&2; exit 1; }
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" "$@"; }

if command -v lintian >/dev/null; then
  lintian --fail-on error,warning "$@" 2>&1 | grep -v 'root privileges' || true
  lintian --fail-on error,warning "$@" >/dev/null 2>&1 || wrong "lintian complains"
fi

# The first mirror that is no directory of updates.
read -r mirror release < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
    'Created-By: Packages' | awk '$2 !~ /-/ { print; exit }')
[ -n "$mirror" ] || wrong "apt knows no mirror"
rm -rf "$directory"
mkdir -p "$directory"
trap 'rm -rf "$root"' EXIT
echo "deb-test: $release from $mirror"
debootstrap --variant=minbase "$release" "$root" "$mirror" >"$directory/debootstrap.log" 2>&1 ||
    wrong "debootstrap: $(tail -n 1 "$directory/debootstrap.log")"
apt-config dump Acquire | grep -i proxy >"$root/etc/apt/apt.conf.d/proxy" || true
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true

mkdir "$root/debs" && cp "$@" "$root/debs"
(cd "$root" && find usr etc -type f | sort) >"$directory/before"
inside sh -c "apt-get install -y --no-install-recommends /debs/*.deb" >"$directory/install.log" 2>&1 ||
    wrong "apt-get install: $(tail -n 1 "$directory/install.log")"

# Without /proc nothing is found by where it is, and the program must run all the same.
inside sh -c "cd /tmp && memlog run -o /tmp -- perl -e 1" >/dev/null 2>&1 || wrong "memlog run fails without /proc"
cp packaging/deb_tests/installed "$root/tmp"
mount -t proc proc "$root/proc"
out=$(inside sh -c 'AUTOPKGTEST_TMP=/tmp /tmp/installed 2>&1') || failed=1
umount "$root/proc"
[ -z "${failed:-}" ] || wrong "$out"

inside apt-get remove -y --purge libmtrace >"$directory/remove.log" 2>&1 || wrong "apt-get remove fails"
left=$(cd "$root" && find usr etc -name '*mtrace*' -o -name '*memlog*' | grep -v '^usr/bin/mtrace$' || true)
[ -z "$left" ] || wrong "left behind: $left"
echo "deb-test: ok"
