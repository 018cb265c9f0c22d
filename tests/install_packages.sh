#!/bin/bash
# install_packages.sh [--missing] FILE: installs those of the Debian packages listed in FILE that are
# missing; with --missing names them, and nothing where there is no dpkg. The first word of a line
# counts; NAME:ARCHITECTURE is of another architecture, which dpkg is told of.
# With sudo when not root; when neither is possible, one line that names the packages, and exit 1.
# Services that a package would start are kept from starting.
set -u
only_names=
if [ "$1" = --missing ]; then
  command -v dpkg-query >/dev/null || exit 0
  only_names=1
  shift
fi
missing=()
while read -r package _; do
  case $package in ''|'#'*) continue ;; esac
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)
  [[ $state == installed* ]] || missing+=("$package")  # once for each architecture
done < "$1"
[ ${#missing[@]} -eq 0 ] && exit 0
if [ -n "$only_names" ]; then
  echo "${missing[*]}"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=(sudo)
  else
    echo "mtrace: please install these Debian packages (not root, no sudo): ${missing[*]}" >&2
    exit 1
  fi
fi
if ! command -v apt-get >/dev/null; then
  echo "mtrace: please install these packages (no apt-get here): ${missing[*]}" >&2
  exit 1
fi
echo "installing: ${missing[*]}"
policy=/usr/sbin/policy-rc.d
made_policy=
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  made_policy=1
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
for package in "${missing[@]}"; do
  [[ $package == *:* ]] && "${as_root[@]}" dpkg --add-architecture "${package#*:}"
done
"${as_root[@]}" apt-get update >"$log" 2>&1
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1
status=$?
[ -n "$made_policy" ] && "${as_root[@]}" rm -f "$policy"
if [ $status -ne 0 ]; then
  tail -20 "$log" >&2
  echo "mtrace: could not install: ${missing[*]}" >&2
fi
rm -f "$log"
exit $status
