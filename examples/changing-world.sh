#!/usr/bin/env bash
# Two nodes of `tollgate serve` limit traffic over two shards with replicas and sentinels, while the servers
# change: subjects move from memcached to the shards, a primary is killed, another one freezes and comes back, a shard is
# added. At the end it reports, from the history of all responses of the nodes' HTTP listeners: errors to callers,
# windows opened early, refusals below the limit, and the units admitted above a limit with their bound. It fails unless
# everything is within its bound.
#
#   examples/changing-world.sh [--quick] [--report FILE.html]
#
# TOLLGATE is the path of the tollgate binary, TOLLGATE_CHAOS that of the fault injector, REDIS_SERVER and MEMCACHED
# those of the servers. Everything runs on loopback in a temporary directory, which is removed at the end.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
tollgate=${TOLLGATE:-$root/target/release/tollgate}
chaos=${TOLLGATE_CHAOS:-$root/target/release/tollgate-chaos}
if [ ! -x "$tollgate" ] || [ ! -x "$chaos" ]; then
    cargo build --release --manifest-path "$root/Cargo.toml" -p tollgate-cli -p tollgate-chaos
fi
exec "$chaos" \
    --tollgate "$tollgate" \
    --redis-server "${REDIS_SERVER:-redis-server}" \
    --memcached "${MEMCACHED:-memcached}" \
    "$@" changing-world
