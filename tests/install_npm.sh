#!/bin/bash
# install_npm.sh FILE DIRECTORY: puts the npm packages listed in FILE under DIRECTORY/node_modules.
# Where npm or its registry is out of reach it says so and goes on: the tests that need one fail.
set -u
packages=$(grep -v '^#' "$1")
# Some packages of nodejs bring npm, Debian's own does not.
if ! command -v npm >/dev/null && [ "$(id -u)" = 0 ]; then
  apt-get install -qq -y --no-install-recommends npm >/dev/null 2>&1
fi
if ! command -v npm >/dev/null; then
  echo "mtrace: no npm: not installed: $packages" >&2
  exit 0
fi
mkdir -p "$2"
# The home directory may not be writable.
[ -w "${HOME:-/}" ] || export npm_config_cache="$2/cache"
timeout 120 npm install --prefix "$2" --no-audit --no-fund --no-save --ignore-scripts \
    $packages >"$2/log" 2>&1 || {
  tail -5 "$2/log" >&2
  echo "mtrace: could not install from npm: $packages" >&2
}
exit 0
