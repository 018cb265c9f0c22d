#!/bin/bash
# package.sh PACKAGE ROOT OUT VERSION ARCHITECTURE: makes OUT/PACKAGE_VERSION_ARCHITECTURE.deb and that of
# its debugging information, PACKAGE-dbgsym, of the files below ROOT, with fields from PACKAGE.control.in.
# Equal files give equal packages: all are from SOURCE_DATE_EPOCH. CROSS: what the names of another
# processor's tools begin with.
set -eu -o pipefail
umask 022
package=$1
root=$2
out=$3
version=$4
architecture=$5
here=$(dirname "$(realpath "$0")")

# $1 package $2 root $3 template; then sed's expressions
pack() {
  local name=$1 root=$2 template=$3 size
  shift 3
  mkdir -p "$root/DEBIAN"
  size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ n += $1 } END { print int((n + 1023) / 1024) }')
  sed -e "s|@PACKAGE@|$package|; s|@VERSION@|$version|; s|@ARCHITECTURE@|$architecture|; s|@SIZE@|$size|" \
      "$@" "$template" >"$root/DEBIAN/control"
  chmod -R u=rwX,go=rX "$root"
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group --build "$root" "$out/${name}_${version}_$architecture.deb" >/dev/null
}

# Each binary's debugging information goes to where gdb and memlog look for it by build-id.
binaries=()
ids=
rm -rf "$root-dbgsym"
while IFS= read -r file; do
  id=$("${CROSS-}readelf" -n "$file" | sed -n 's/.*Build ID: //p')
  debug=$root-dbgsym/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
  mkdir -p "$(dirname "$debug")"
  "${CROSS-}objcopy" --only-keep-debug --compress-debug-sections "$file" "$debug"
  "${CROSS-}strip" --strip-unneeded --remove-section=.comment --remove-section=.note "$file"
  "${CROSS-}objcopy" --add-gnu-debuglink="$debug" "$file"
  case $file in *.so) chmod 644 "$file" ;; esac
  binaries+=("$(realpath "$file")")
  ids+=${ids:+ }$id
done < <(find "$root/usr" -type f \( -name '*.so' -o -path '*/bin/*' -o -name memlog-replay \) | LC_ALL=C sort)

documents=$root/usr/share/doc/$package
mkdir -p "$documents" "$root/DEBIAN"
cp "$here/../../LICENSE" "$documents/copyright"
gzip -9n <"$here/changelog" >"$documents/changelog.gz"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/debian"
printf 'Source: mtrace\n\nPackage: %s\nArchitecture: any\n' "$package" >"$work/debian/control"
(cd "$work" && DEB_HOST_ARCH=$architecture dpkg-shlibdeps -Tsubstvars "${binaries[@]}")
depends=$(sed -n 's/^shlibs:Depends=//p' "$work/substvars")
[ -n "$depends" ]
pack "$package" "$root" "$here/$package.control.in" -e "s|@DEPENDS@|$depends|"
mkdir -p "$root-dbgsym/usr/share/doc"
ln -s "$package" "$root-dbgsym/usr/share/doc/$package-dbgsym"
pack "$package-dbgsym" "$root-dbgsym" "$here/dbgsym.control.in" -e "s|@IDS@|$ids|"
