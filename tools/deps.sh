#!/bin/bash
# deps.sh install|check KIND BUILD: installs the Debian packages that KIND needs (build, test, dist,
# aarch64, hosts), or says which are missing and exits 1. The first word of a line of a list counts;
# NAME:ARCHITECTURE is of another architecture, which dpkg is told of. As root or with sudo; when
# neither is possible, one line names the packages. Services that a package would start are kept
# from starting. For the tests, packages of npm go to BUILD/npm.
set -u
action=$1 kind=$2 build=$3
case $kind in
  build) list=packages.txt; what='building needs' ;;
  test) list=tests/packages.txt; what='the tests need' ;;
  dist) list=packaging/packages.txt; what='packaging needs' ;;
  aarch64) list=tests/packages_aarch64.txt; what='check-aarch64 needs' ;;
  hosts)
    list=$build/host_packages
    mkdir -p "$build"
    /usr/bin/python3 -B tools/hosts/run.py --build "$build" --output "$build/hosts" --list |
        awk '{ for (i = 3; i <= NF; ++i) print $i }' | sort -u >"$list"
    ;;
esac
[ "$kind" = build ] && target=deps || target=deps-$kind

# Where there is no dpkg it is not known what is missing: what needs it fails.
missing_packages() {
  command -v dpkg-query >/dev/null || return 0
  while read -r package _; do
    case $package in ''|'#'*) continue ;; esac
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)
    [[ $state == installed* ]] || echo "$package"  # once for each architecture
  done < "$1"
}
# One run of the preprocessor, which leaves the packages whose header it does not find.
missing_headers() {
  sed -n 's/^\([^ #]*\) \(.*\)/#if !__has_include(<\2>)\nmissing: \1\n#endif/p' "$1" |
      $CXX -E -P -x c++ - | sed -n 's/^missing: *//p' | tr -d ' '
}
install_npm() {
  local packages
  packages=$(grep -v '^#' tests/npm_packages.txt)
  # Some packages of nodejs bring npm, Debian's own does not.
  if ! command -v npm >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get install -qq -y --no-install-recommends npm >/dev/null 2>&1
  fi
  mkdir -p "$build/npm"
  [ -w "${HOME:-/}" ] || export npm_config_cache="$build/npm/cache"  # the home directory
  # Out of reach, it is said: the tests that need a package fail.
  timeout 120 npm install --prefix "$build/npm" --no-audit --no-fund --no-save --ignore-scripts \
      $packages >"$build/npm/log" 2>&1 || {
    tail -5 "$build/npm/log" >&2
    echo "mtrace: could not install from npm: $packages" >&2
  }
}

if [ "$action" = check ]; then
  if [ "$kind" = build ]; then
    command -v ${CXX%% *} >/dev/null || {
      echo "mtrace: no compiler: $CXX. make $target installs what building needs" >&2
      exit 1
    }
    missing=$(missing_headers $list)
  else
    missing=$(missing_packages $list)
  fi
  [ -z "$missing" ] || {
    echo "mtrace: $what ${missing//$'\n'/ }; make $target installs them" >&2
    exit 1
  }
  mkdir -p "$build"
  [ "$kind" != test ] || [ -d "$build/npm" ] || {
    [ -d build/npm ] && ln -s "$PWD/build/npm" "$build/npm"  # another build's
  } || {
    echo "mtrace: the tests need packages of npm; make $target installs them" >&2
    exit 1
  }
  exit 0
fi

mapfile -t missing < <(missing_packages $list)
if [ ${#missing[@]} -ne 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      echo "mtrace: please install these Debian packages (not root, no sudo): ${missing[*]}" >&2
      exit 1
    fi
  fi
  command -v apt-get >/dev/null || {
    echo "mtrace: please install these packages (no apt-get here): ${missing[*]}" >&2
    exit 1
  }
  echo "installing: ${missing[*]}"
  policy=/usr/sbin/policy-rc.d
  made_policy=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    made_policy=1
  fi
  log=$(mktemp)
  for package in "${missing[@]}"; do
    [[ $package == *:* ]] && "${as_root[@]}" dpkg --add-architecture "${package#*:}"
  done
  "${as_root[@]}" apt-get update >"$log" 2>&1
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1
  status=$?
  [ -n "$made_policy" ] && "${as_root[@]}" rm -f "$policy"
  [ $status -eq 0 ] || {
    tail -20 "$log" >&2
    echo "mtrace: could not install: ${missing[*]}" >&2
    exit $status
  }
  rm -f "$log"
fi
[ "$kind" != test ] || install_npm
exit 0
