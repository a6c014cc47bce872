//! Metrics of memcached servers.

use tollgate_backend::{Backend, ServerStatus};
use tollgate_server::metrics::{Exposition, Family};

use super::families::{
    MEMCACHED_CAS_CONFLICTS, MEMCACHED_CONNECTED, MEMCACHED_CONNECTIONS_MAX, MEMCACHED_CONTENDED,
    MEMCACHED_DURATION, MEMCACHED_EVICTED, MEMCACHED_FLUSHES, MEMCACHED_REFUND_FAILURES,
    MEMCACHED_RESTARTS, MEMCACHED_TORN,
};
use super::per_store::{PerStore, of_each};

pub(super) fn write(page: &mut Exposition, leaves: &[PerStore<&Backend>]) {
    let servers = of_each(leaves, Backend::servers);
    let mut family = |family: &Family, value: fn(&ServerStatus) -> u64| {
        page.family(
            family,
            servers.iter().map(|(side, it)| ([*side, &*it.name], value(&it.server))),
        );
    };
    family(&MEMCACHED_CONNECTED, |it| it.connected as u64);
    family(&MEMCACHED_CONNECTIONS_MAX, |it| it.connections as u64);
    family(&MEMCACHED_EVICTED, |it| it.losses.evicted);
    family(&MEMCACHED_RESTARTS, |it| it.losses.restarts);
    family(&MEMCACHED_FLUSHES, |it| it.losses.flushes);
    family(&MEMCACHED_TORN, |it| it.torn);
    family(&MEMCACHED_CAS_CONFLICTS, |it| it.cas_conflicts);
    family(&MEMCACHED_CONTENDED, |it| it.contended);
    family(&MEMCACHED_REFUND_FAILURES, |it| it.unrefunded);
    let took = servers.iter().map(|(side, it)| ([*side, &*it.name], it.took));
    page.histogram(&MEMCACHED_DURATION, took);
}
