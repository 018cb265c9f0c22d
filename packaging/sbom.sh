#!/bin/bash
# sbom.sh VERSION PACKAGES LIBRARIES ARCHITECTURE: prints, in SPDX 2.3 as JSON, what mtrace is built
# from: the Debian packages listed in the file PACKAGES and those that hold the static LIBRARIES (-lNAME
# ...), each in the version that is installed. The time is SOURCE_DATE_EPOCH.
set -eu -o pipefail
version=$1
list=$2
architecture=$4
compiler=${CXX:-g++}

# $1 name of a static library: the package that holds it
holder() {
  local file
  file=$(realpath "$($compiler -print-file-name="$1")")
  dpkg-query -S "$file" "${file#/usr}" 2>/dev/null | sed "s/:.*//" | head -1 || true
}
packages=$({
  sed 's/[[:space:]]*#.*//; s/[[:space:]].*//; /^$/d' "$list"
  for option in $3 -lstdc++ -lc; do
    [[ $option == -l* ]] || continue
    holder "lib${option#-l}.a"
  done
} | LC_ALL=C sort -u)

cat <<END
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "mtrace-$version",
  "documentNamespace": "https://mtrace.invalid/spdx/mtrace-$version-$SOURCE_DATE_EPOCH",
  "creationInfo": {
    "created": "$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)",
    "creators": ["Organization: The mtrace developers", "Tool: sbom.sh"]
  },
  "documentDescribes": ["SPDXRef-mtrace"],
  "packages": [
    {"SPDXID": "SPDXRef-mtrace", "name": "mtrace", "versionInfo": "$version", "licenseConcluded": "MIT",
     "licenseDeclared": "MIT", "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": false}
END
related=
format='${Version} ${Architecture} ${source:Package}\n'
for package in $packages; do
  # Where another processor's is installed, too, both have one version.
  read -r installed of source < <({ dpkg-query -W -f="$format" "$package:$architecture" 2>/dev/null ||
      dpkg-query -W -f="$format" "$package"; } | head -1)
  id=SPDXRef-$(printf %s "$package" | tr -c 'A-Za-z0-9.-' -)
  cat <<END
    ,{"SPDXID": "$id", "name": "$package", "versionInfo": "$installed", "sourceInfo": "built from $source",
      "supplier": "Organization: Debian", "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION",
      "copyrightText": "NOASSERTION", "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
      "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
        "referenceLocator": "pkg:deb/debian/$(printf %s "$package" | sed 's/+/%2B/g')@$(printf %s "$installed" | sed 's/+/%2B/g; s/:/%3A/g; s/~/%7E/g')?arch=$of"}]}
END
  related+=",
    {\"spdxElementId\": \"SPDXRef-mtrace\", \"relationshipType\": \"DEPENDS_ON\", \"relatedSpdxElement\": \"$id\"}"
done
cat <<END
  ],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-mtrace"}$related
  ]
}
END
