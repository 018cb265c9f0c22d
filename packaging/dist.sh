#!/bin/bash
# dist.sh OUT DIRECTORY: puts the packages in OUT into DIRECTORY, for people to fetch, with a script that
# installs the archive, an SBOM and sums. SIGN=KEYID signs the sums. Run by make dist.
set -eu -o pipefail
out=$1 directory=$2
here=$(dirname "$(realpath "$0")")
rm -rf "$directory"
mkdir -p "$directory"
cp "$out"/{lib,}mtrace{,-dbgsym}_"${VERSION}_$DEB_ARCHITECTURE".deb "$out/mtrace-$VERSION-1.$ARCH.rpm" \
    "$out/mtrace-$VERSION-linux-$ARCH.tar.gz" "$here/install.sh" "$directory"
"$here/sbom.sh" "$VERSION" packages.txt "$STATIC_LIBS" "$DEB_ARCHITECTURE" >"$directory/mtrace-$VERSION.spdx.json"
cd "$directory"
LC_ALL=C sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS
if [ -n "${SIGN-}" ]; then
  gpg --batch --yes --local-user "$SIGN" --armor --detach-sign SHA256SUMS
else
  echo '  not signed: make dist SIGN=KEYID signs SHA256SUMS'
fi
