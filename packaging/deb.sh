#!/bin/bash
# deb.sh STAGE OUT: makes Debian packages in OUT of what install puts below STAGE: libmtrace has the
# library, mtrace all else, and each a package of its debugging information. Fields are in
# *.control.in. Equal files give equal packages: all are from SOURCE_DATE_EPOCH. CROSS: what the names
# of another processor's tools begin with. Run by make deb.
set -eu -o pipefail
umask 022
stage=$1 out=$2
here=$(dirname "$(realpath "$0")")
rm -rf "$stage"
mkdir -p "$stage" "$out"
stage=$(realpath "$stage")

# $1 package $2 root $3 template; then sed's expressions
pack() {
  local name=$1 root=$2 template=$3 size
  shift 3
  mkdir -p "$root/DEBIAN"
  size=$(find "$root/usr" -type f -printf '%s\n' | awk '{ n += $1 } END { print int((n + 1023) / 1024) }')
  sed -e "s|@PACKAGE@|$package|; s|@VERSION@|$VERSION|; s|@ARCHITECTURE@|$DEB_ARCHITECTURE|; s|@SIZE@|$size|" \
      "$@" "$template" >"$root/DEBIAN/control"
  chmod -R u=rwX,go=rX "$root"
  (cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
  find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
  dpkg-deb --root-owner-group --build "$root" "$out/${name}_${VERSION}_$DEB_ARCHITECTURE.deb" >/dev/null
}

# $1 package, of what is below STAGE/PACKAGE
make_package() {
  local package=$1 root=$stage/$1 id debug documents depends work ids=
  local binaries=()
  # Each binary's debugging information goes to where gdb and memlog look for it by build-id.
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
  cp "$here/../LICENSE" "$documents/copyright"
  gzip -9n <"$here/changelog" >"$documents/changelog.gz"
  work=$(mktemp -d)
  mkdir "$work/debian"
  printf 'Source: mtrace\n\nPackage: %s\nArchitecture: any\n' "$package" >"$work/debian/control"
  (cd "$work" && DEB_HOST_ARCH=$DEB_ARCHITECTURE dpkg-shlibdeps -Tsubstvars "${binaries[@]}")
  depends=$(sed -n 's/^shlibs:Depends=//p' "$work/substvars")
  [ -n "$depends" ]
  pack "$package" "$root" "$here/$package.control.in" -e "s|@DEPENDS@|$depends|"
  mkdir -p "$root-dbgsym/usr/share/doc"
  ln -s "$package" "$root-dbgsym/usr/share/doc/$package-dbgsym"
  pack "$package-dbgsym" "$root-dbgsym" "$here/dbgsym.control.in" -e "s|@IDS@|$ids|"
  rm -r "$work"
}

$MAKE --no-print-directory install PREFIX=/usr LIBDIR="/usr/lib/$MULTIARCH" STAGE="$1" \
    DESTDIR="$stage/mtrace"
find "$stage/mtrace/usr/share/man" -type f -exec gzip -9n {} +
rm "$stage/mtrace/usr/share/doc/mtrace/LICENSE"
mkdir -p "$stage/libmtrace/usr/lib/$MULTIARCH" "$stage/libmtrace/DEBIAN"
mv "$stage/mtrace/usr/lib/$MULTIARCH/libmtrace.so" "$stage/libmtrace/usr/lib/$MULTIARCH"
echo 'activate-noawait ldconfig' >"$stage/libmtrace/DEBIAN/triggers"
for name in libmtrace mtrace; do
  install -D -m 644 "$here/$name.lintian-overrides" "$stage/$name/usr/share/lintian/overrides/$name"
  make_package $name
done
