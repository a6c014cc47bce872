//! Selection of the address that receives a request, among the addresses of a group of servers.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::time::Instant;

use super::endpoint::Endpoint;

/// A generator of random numbers for balancing (splitmix64). The numbers need not be unpredictable.
#[derive(Debug, Default)]
pub(super) struct RandomSequence(AtomicU64);

impl RandomSequence {
    /// Returns a random number from 0 to `bound − 1`. `bound` must be at least 1.
    fn below(&self, bound: usize) -> usize {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound.max(1) as u64).unwrap_or(0)
    }
}

/// Returns the address for the next attempt to send a request. `tried` are the addresses to which
/// the request was already sent. They are not selected again, and the result is `None` if no other
/// address is left. The function selects two of the other addresses at random, and returns the one
/// with fewer requests in flight. It selects an address that is set aside only if all addresses
/// that are left are set aside.
pub(super) fn pick<'e>(
    endpoints: &'e [Arc<Endpoint>],
    tried: &[Arc<Endpoint>],
    random: &RandomSequence,
) -> Option<&'e Arc<Endpoint>> {
    if let ([one], []) = (endpoints, tried) {
        return Some(one);
    }
    let now = Instant::now();
    let is_new = |endpoint: &&Arc<Endpoint>| !tried.iter().any(|one| Arc::ptr_eq(one, endpoint));
    let in_use = |endpoint: &&Arc<Endpoint>| endpoint.is_in_use(now) && is_new(endpoint);
    two_choices(|| endpoints.iter().filter(in_use), random)
        .or_else(|| two_choices(|| endpoints.iter().filter(is_new), random))
}

fn two_choices<'e, I: Iterator<Item = &'e Arc<Endpoint>>>(
    candidates: impl Fn() -> I,
    random: &RandomSequence,
) -> Option<&'e Arc<Endpoint>> {
    let count = candidates().count();
    if count < 2 {
        return candidates().next();
    }
    let first = random.below(count);
    let second = (first + 1 + random.below(count - 1)) % count;
    let (one, other) = (candidates().nth(first)?, candidates().nth(second)?);
    Some(if other.in_flight.count() < one.in_flight.count() { other } else { one })
}
