#!/bin/sh
# install.sh [ARCHIVE]: unpacks mtrace-VERSION-linux-MACHINE.tar.gz, the one in this directory unless
# another is named, into PREFIX ($HOME/.local). Checks it against SHA256SUMS beside it first. Needs no
# network and no root, and changes nothing else.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

here=$(cd "$(dirname "$0")" && pwd)
archive=${1:-}
if [ -z "$archive" ]; then
  for archive in "$here"/mtrace-*-linux-"$(uname -m)".tar.gz; do :; done
fi
[ -f "$archive" ] || fail "no archive for $(uname -m) in $here; name one: install.sh ARCHIVE"
name=$(basename "$archive")
directory=$(cd "$(dirname "$archive")" && pwd)
[ -f "$directory/SHA256SUMS" ] || fail "no SHA256SUMS beside $archive: fetch it, too"
sum=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\$/\1/p" "$directory/SHA256SUMS")
[ -n "$sum" ] || fail "SHA256SUMS has no line for $name"
echo "$sum  $directory/$name" | sha256sum -c - >/dev/null 2>&1 ||
    fail "$name is damaged: its SHA-256 is not the one in SHA256SUMS"

prefix=${PREFIX:-$HOME/.local}
mkdir -p "$prefix" && [ -w "$prefix" ] || fail "cannot write to $prefix; set PREFIX"
unpacked=$(mktemp -d "$prefix/.mtrace-XXXXXX")
trap 'rm -rf "$unpacked"' EXIT
tar -xzf "$directory/$name" -C "$unpacked"
cp -R "$unpacked"/*/. "$prefix"
printf '%s\n' "memlog is in $prefix/bin. To remove all of it:" \
    "  tar -tzf $name | sed -n 's|^[^/]*/\(.*[^/]\)\$|$prefix/\1|p' | xargs -d '\\n' rm -f"
