//! The TTL of cached refusals, which can change while the cache is in use.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::Millis;

use super::DenyCacheTtl;

/// A [`DenyCacheTtl`] that can be read and set from any thread. The number is the TTL in
/// milliseconds. The two variants without a time have the two largest numbers, which are larger
/// than any [`Millis`].
pub(super) struct Set(AtomicU64);

const OFF: u64 = u64::MAX;
const UNTIL_RESET: u64 = u64::MAX - 1;

impl Set {
    pub(super) const fn new(ttl: DenyCacheTtl) -> Self {
        Self(AtomicU64::new(encode(ttl)))
    }

    pub(super) fn get(&self) -> DenyCacheTtl {
        match self.0.load(Ordering::Relaxed) {
            OFF => DenyCacheTtl::Off,
            UNTIL_RESET => DenyCacheTtl::UntilReset,
            millis => DenyCacheTtl::AtMost(Millis::new(millis)),
        }
    }

    pub(super) fn set(&self, ttl: DenyCacheTtl) {
        self.0.store(encode(ttl), Ordering::Relaxed);
    }
}

const fn encode(ttl: DenyCacheTtl) -> u64 {
    match ttl {
        DenyCacheTtl::Off => OFF,
        DenyCacheTtl::UntilReset => UNTIL_RESET,
        DenyCacheTtl::AtMost(hold) => hold.get(),
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_read() {
        let set = Set::new(DenyCacheTtl::Off);
        let longest = DenyCacheTtl::AtMost(Millis::new(u64::MAX));
        for ttl in [
            DenyCacheTtl::UntilReset,
            longest,
            DenyCacheTtl::AtMost(Millis::ZERO),
            DenyCacheTtl::Off,
        ] {
            set.set(ttl);
            assert_eq!(set.get(), ttl);
        }
    }
}
