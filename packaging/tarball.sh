#!/bin/bash
# tarball.sh STAGE OUT: makes OUT/mtrace-VERSION-linux-ARCH.tar.gz, an archive for any Linux: what install
# puts below STAGE, with a static memlog, which has no HTTP. Run by make tarball.
set -eu -o pipefail
stage=$1 out=$2
name=mtrace-$VERSION-linux-$ARCH
. "$(dirname "$0")/static.sh"
install_static "$stage" /usr/local /usr/local/lib
root=$stage/root/usr/local
sed -i -e 's|^prefix=.*|prefix=${pcfiledir}/../..|' -e 's|/usr/local|${prefix}|' "$root/lib/pkgconfig/mtrace.pc"
tar -c -C "$root" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner \
    --mtime="@$SOURCE_DATE_EPOCH" --transform="s|^\.|$name|" . | gzip -9n >"$out/$name.tar.gz"
