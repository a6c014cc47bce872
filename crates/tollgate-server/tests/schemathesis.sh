#!/usr/bin/env bash
# Installs schemathesis, which generates requests from the OpenAPI document, into
# target/schemathesis. An existing installation of its version is kept.
set -euo pipefail
cd "$(dirname "$0")/../../.."

version=4.32.5
to=target/schemathesis
[ -d "$to/schemathesis-$version.dist-info" ] && exit
rm -rf "$to"
pip install --quiet --disable-pip-version-check --root-user-action ignore --no-compile \
    --target "$to" "schemathesis==$version"
