#!/bin/bash
# tarball_test.sh [BUILD]: unpacks the archive that make tarball has made in BUILD (build) with install.sh, and
# runs it in a root with nothing else, in one with musl alone, with the program of make tests, in a new Debian
# of this machine's release, and in Ubuntu 18.04 (glibc 2.27) and 20.04 (2.31). Says "ok" and exits 0, or what
# is wrong and exits 1.
set -eu -o pipefail
build=${1:-build}
archive=$(realpath "$build"/mtrace-*-linux-*.tar.gz)
musl_program=$(realpath "$build/tests/programs/foreign_musl")
mkdir -p "$build/tarball-test"
directory=$(realpath "$build/tarball-test")
sources=$(cd "$(dirname "$0")/.." && pwd)
ubuntu=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
[ "$(id -u)" = 0 ] || { echo "tarball-test: chroot needs root" >&2; exit 1; }

mounted=
leave() { [ -z "$mounted" ] || umount "$mounted"; rm -rf "$directory"; }
trap leave EXIT
wrong() { echo "tarball-test: $*" >&2; exit 1; }
rm -rf "$directory"
mkdir -p "$directory/fetched" "$directory/home"

# install.sh: refuses a damaged archive, unpacks a good one, into a path with a space.
cp "$archive" "$sources/packaging/install.sh" "$directory/fetched"
name=$(basename "$archive")
(cd "$directory/fetched" && sha256sum "$name" >SHA256SUMS)
unpack() { env -i PATH="$PATH" HOME="$directory/home" "$@" sh "$directory/fetched/install.sh" 2>&1; }
unpack >/dev/null || wrong "install.sh fails"
[ -x "$directory/home/.local/bin/memlog" ] || wrong "install.sh does not unpack into ~/.local"
mkdir "$directory/a place" && cd "$directory/fetched"
says=$(unpack PREFIX="$directory/a place") || wrong "install.sh fails in a path with a space: $says"
sh -c "$(sed -n 's/^  //p' <<<"$says")" || wrong "what install.sh says removes nothing"
[ -z "$(find "$directory/a place" ! -type d)" ] || wrong "not removed: $(find "$directory/a place" ! -type d | head -3)"
printf x >>"$directory/fetched/$name"
! says=$(unpack PREFIX="$directory/damaged") || wrong "install.sh takes a damaged archive"
[ ! -e "$directory/damaged" ] || wrong "install.sh unpacks a damaged archive"
cd "$sources"

# $1 root; then a command in it
inside() { local root=$1; shift; env -i PATH=/opt/mtrace/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp chroot "$root" "$@"; }
# $1 root: the archive's files come into it
enter() {
  mkdir -p "$1/opt" "$1/tmp" "$1/proc"
  cp -R "$directory/home/.local" "$1/opt/mtrace"
  cp "$sources/tests/golden/app-4711-1.memlog" "$1/tmp"
  echo "tarball-test: $2"
}
with_proc() { mounted=$1/proc; mount -t proc proc "$mounted"; }
without_proc() { umount "$mounted"; mounted=; }

bare=$directory/bare
enter "$bare" "nothing else"
[[ $(inside "$bare" memlog show /tmp/app-4711-1.memlog) == *stack=* ]] || wrong "memlog show fails where nothing else is"
says=$(inside "$bare" memlog serve /tmp 2>&1) && wrong "a static memlog serves"
[ "$says" = "memlog: this memlog is static and has no HTTP: install the Debian package, or build mtrace" ] ||
    wrong "memlog serve says: $says"

musl=$directory/musl
mkdir -p "$musl/lib"
cp -L /lib/ld-musl-*.so.1 "$musl/lib"
cp "$musl_program" "$musl/program"
enter "$musl" "musl alone"
with_proc "$musl"
says=$(inside "$musl" memlog run -o /tmp -- /program 2>&1) && wrong "musl: status of /program"
without_proc
[[ $says == *"/program ("*") ended with status 3"*"live at exit"* ]] || wrong "musl: $says"

# $1 release $2 mirror
try_release() {
  local root=$directory/$1 program='my @kept = map { $_ x 100 } 1 .. 1000;' shown
  debootstrap --no-check-gpg --variant=minbase "$1" "$root" "$2" >"$directory/$1.log" 2>&1 ||
      wrong "debootstrap: $(tail -n 1 "$directory/$1.log")"
  enter "$root" "$1, $(inside "$root" ldd --version | head -n 1)"
  with_proc "$root"
  inside "$root" sh -c "cd /tmp && memlog run -- perl -e '$program' >run.txt 2>&1" || wrong "$1: $(tail "$root/tmp/run.txt")"
  grep -q 'live at exit by function' "$root/tmp/run.txt" && grep -q Perl_ "$root/tmp/run.txt" ||
      wrong "$1: no names: $(cat "$root/tmp/run.txt")"
  shown=$(inside "$root" sh -c 'cd /tmp && memlog show --sum --depth 64 perl*.memlog')
  # From main down: walks come through all objects.
  [[ $shown == *" main "* ]] || wrong "$1: stacks do not reach main"
  # A program with threads and plug-ins, and one in C++.
  inside "$root" sh -c 'cd /tmp && memlog run -q -- apt-cache policy >out.txt 2>err.txt && LD_PRELOAD= apt-cache policy | cmp - out.txt' ||
      wrong "$1: apt-cache: $(cat "$root/tmp/err.txt")"
  without_proc
  rm -rf "$root"
}
read -r mirror release < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' \
    'Created-By: Packages' | awk '$2 !~ /-/ { print; exit }')
[ -n "$mirror" ] || wrong "apt knows no mirror"
try_release "$release" "$mirror"
try_release bionic "$ubuntu"
try_release focal "$ubuntu"
echo "tarball-test: ok"
