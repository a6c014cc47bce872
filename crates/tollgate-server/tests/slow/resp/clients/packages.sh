#!/usr/bin/env bash
# Installs the Redis clients of the tests into target/redis-clients, in the versions of the files
# next to this one. An existing installation is kept.
set -euo pipefail
cd "$(dirname "$0")"
to=../../../../../../target/redis-clients

if ! cmp -s node/package-lock.json "$to/node/installed.json"; then
    mkdir -p "$to/node"
    cp node/package.json node/package-lock.json "$to/node"
    npm ci --prefix "$to/node" --ignore-scripts --no-audit --no-fund --loglevel=error
    cp node/package-lock.json "$to/node/installed.json"
fi

if ! cmp -s python/requirements.txt "$to/python/installed.txt"; then
    rm -rf "$to/python"
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps \
        --only-binary :all: --target "$to/python" --requirement python/requirements.txt
    cp python/requirements.txt "$to/python/installed.txt"
fi
