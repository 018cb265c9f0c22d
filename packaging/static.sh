# Read by tarball.sh and rpm.sh.
# $1 stage $2 PREFIX $3 LIBDIR: installs into STAGE/root with a static memlog.
install_static() {
  rm -rf "$1"
  mkdir -p "$1/root"
  umask 022
  $MAKE --no-print-directory install PREFIX="$2" LIBDIR="$3" STAGE="$1" STATIC=-static \
      DESTDIR="$(realpath "$1/root")"
  "${CROSS-}strip" --strip-unneeded "$1/root$2/bin/memlog" "$1/root$3/libmtrace.so" \
      "$1/root$3/mtrace/memlog-replay"
}
