#!/usr/bin/env bash
# Puts schemathesis, which reads the OpenAPI document and tries what it says, into
# target/schemathesis. What is there already, in its version, stays.
set -euo pipefail
cd "$(dirname "$0")/../../.."

version=4.32.5
to=target/schemathesis
[ -d "$to/schemathesis-$version.dist-info" ] && exit
rm -rf "$to"
pip install --quiet --disable-pip-version-check --root-user-action ignore --no-compile \
    --target "$to" "schemathesis==$version"
