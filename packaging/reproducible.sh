#!/bin/bash
# reproducible.sh [DIRECTORY]: builds HEAD twice below DIRECTORY (build/reproducible), in directories with
# other names, with other umasks, languages, time zones, homes and, for root, users, and compares what is
# given to others byte for byte. Says "ok" and exits 0, or names what differs and exits 1.
set -eu -o pipefail
mkdir -p "${1:-build/reproducible}"
directory=$(realpath "${1:-build/reproducible}")
first=$directory/first
second="$directory/the second, elsewhere"
rm -rf "$first" "$second"
targets=(all deb tarball rpm)
products=(libmtrace.so memlog mtrace/memlog-http.so mtrace/memlog-replay '*.deb' '*.tar.gz' '*.rpm')

unset MAKEFLAGS MAKELEVEL SOURCE_DATE_EPOCH
# $1 where $2 umask; then how a command is run
build() {
  local where=$1 mask=$2
  shift 2
  mkdir -p "$where"
  git archive HEAD | tar -x -C "$where"
  [ "$(id -u)" != 0 ] || [ "$mask" = 022 ] || chown -R nobody: "$where"
  (cd "$where" && umask "$mask" && "$@" make --silent "${targets[@]}") >"$where.log" 2>&1 ||
      { tail "$where.log" >&2; echo "reproducible: cannot build in $where" >&2; exit 1; }
}
other_user=()
[ "$(id -u)" != 0 ] || other_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
build "$first" 022 env TZ=UTC LC_ALL=C
build "$second" 077 "${other_user[@]}" env TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 HOME="$second" USER=other \
    LOGNAME=other

differ=0
cd "$first/build"
for product in "${products[@]}"; do
  for file in $product; do
    cmp "$file" "$second/build/$file" && sha256sum "$file" || differ=1
  done
done
[ $differ = 0 ] || { echo "reproducible: the builds differ" >&2; exit 1; }
rm -rf "$first" "$second"
echo "reproducible: ok"
