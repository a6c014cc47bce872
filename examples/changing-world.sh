#!/usr/bin/env bash
# Two nodes of `tollgate serve` limit traffic over two shards with replicas and sentinels, while the world beneath them
# changes: subjects move from memcached to the shards, a primary is killed, another one freezes and comes back, a shard is
# added. At the end it tells, from the history of all that callers heard at the nodes' HTTP doors: errors to callers,
# windows opened early, refusals below the limit, and what was admitted above a limit beside the bound. It fails unless
# everything is within its bound.
#
#   examples/changing-world.sh [--quick] [--report FILE.html]
#
# TOLLGATE names the binary that serves, TOLLGATE_CHAOS the one that breaks what it stands on, REDIS_SERVER and MEMCACHED
# the servers to start; all of it runs on loopback, in a directory of its own, and is gone afterwards.
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
