#!/bin/bash
# rpm.sh STAGE OUT: makes OUT/mtrace-VERSION-1.ARCH.rpm of what install puts below STAGE, with a static
# memlog. Run by make rpm.
set -eu -o pipefail
stage=$1 out=$2
here=$(dirname "$(realpath "$0")")
. "$here/static.sh"
install_static "$stage" /usr /usr/lib64
find "$stage/root/usr/share/man" -type f -exec gzip -9n {} +
(cd "$stage/root"
 find usr ! -type d -printf '/%p\n'
 find usr -type d -path '*mtrace*' -printf '%%dir /%p\n') | LC_ALL=C sort >"$stage/files"
# rpmbuild takes no path with a space.
top=$(mktemp -d)
trap 'rm -r "$top"' EXIT
ln -s "$(realpath "$stage")" "$top/rpm"
sed -e "s|@VERSION@|$VERSION|; s|@TOP@|$top/rpm|" \
    -e "s|@DATE@|$(LC_ALL=C date -u -d "@$SOURCE_DATE_EPOCH" '+%a %b %d %Y')|" "$here/mtrace.spec.in" >"$stage/mtrace.spec"
rpmbuild -bb --quiet --define "_topdir $top/rpm" --define '_buildhost localhost' \
    --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' \
    --define '_build_id_links none' --target "$ARCH" "$top/rpm/mtrace.spec"
mv "$stage/RPMS/$ARCH/mtrace-$VERSION-1.$ARCH.rpm" "$out"
