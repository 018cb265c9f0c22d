#!/bin/bash
# deb_test.sh PACKAGE DIRECTORY: installs PACKAGE in a new root below DIRECTORY, uses it there, and
# removes it. Says "ok" and exits 0, or says what is wrong and exits 1.
set -eu
package=$(realpath "$1")
root=$2/root
[ "$(id -u)" = 0 ] || { echo "deb-test: debootstrap needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "deb-test: install debootstrap" >&2; exit 1; }

wrong() { echo "deb-test: $*" >&2; exit 1; }
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root chroot "$root" "$@"; }

if command -v lintian >/dev/null; then
  lintian --fail-on error,warning "$package" 2>&1 | grep -v 'root privileges' || true
  lintian --fail-on error,warning "$package" >/dev/null 2>&1 || wrong "lintian complains"
fi

# The first mirror that is no directory of updates.
read -r mirror release < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
    'Created-By: Packages' | awk '$2 !~ /-/ { print; exit }')
[ -n "$mirror" ] || wrong "apt knows no mirror"
rm -rf "$2"
mkdir -p "$2"
trap 'rm -rf "$root"' EXIT
echo "deb-test: $release from $mirror"
debootstrap --variant=minbase "$release" "$root" "$mirror" >"$2/debootstrap.log" 2>&1 ||
    wrong "debootstrap: $(tail -n 1 "$2/debootstrap.log")"
apt-config dump Acquire | grep -i proxy >"$root/etc/apt/apt.conf.d/proxy" || true
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true

cp "$package" "$root/mtrace.deb"
(cd "$root" && find usr etc -type f | sort) >"$2/before"
inside apt-get install -y --no-install-recommends /mtrace.deb >"$2/install.log" 2>&1 ||
    wrong "apt-get install: $(tail -n 1 "$2/install.log")"

# A program of that system, with /proc and without.
for proc in no yes; do
  [ $proc = no ] || mount -t proc proc "$root/proc"
  out=$(inside sh -c "cd /tmp && rm -f *.memlog && memlog run -o /tmp -- perl -e '\$x = 1' 2>&1" || true)
  reports=$(cd "$root/tmp" && ls -- *.memlog 2>/dev/null || true)
  [ $proc = no ] || umount "$root/proc"
  if [ $proc = yes ]; then
    [[ $out == *"live at exit"* ]] || wrong "memlog run says: $out"
    [[ $reports == perl*-1.memlog ]] || wrong "memlog run left: $reports"
    inside sh -c 'cd /tmp && memlog show' | grep -q 'stack=' || wrong "memlog show has no stack"
    inside sh -c 'cd /tmp && memlog export -f pprof -o out.gz *.memlog && gzip -t out.gz' ||
        wrong "memlog export fails"
  fi
done
inside sh -c 'cd /tmp && rm -f *.memlog && LD_PRELOAD=libmtrace.so MTRACE_OUTPUT=/tmp ls /' >/dev/null
ls "$root"/tmp/ls-*-1.memlog >/dev/null || wrong "LD_PRELOAD=libmtrace.so writes no report"

inside apt-get remove -y --purge mtrace >"$2/remove.log" 2>&1 || wrong "apt-get remove fails"
left=$(cd "$root" && find usr etc -name '*mtrace*' -o -name '*memlog*' | grep -v '^usr/bin/mtrace$' || true)
[ -z "$left" ] || wrong "left behind: $left"
echo "deb-test: ok"
