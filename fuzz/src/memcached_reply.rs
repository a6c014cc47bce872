//! Replies of memcached.

#[path = "../../crates/tollgate-memcached/src/wire/reply.rs"]
#[allow(dead_code, unreachable_pub)]
mod reply;
#[path = "../../crates/tollgate-memcached/src/wire/stats.rs"]
#[allow(dead_code, unreachable_pub)]
mod stats;
mod command {
    /// The same value as in the crate for memcached.
    pub(crate) const MAX_VALUE: usize = 1 << 20;
}

use reply::{Expected, Parsed, parse};

/// A part of the input never contradicts the whole.
pub fn check(data: &[u8]) {
    let Some((input, place)) = crate::cut(data) else { return };
    for expected in [|| Expected::Stats, || Expected::Meta { opaque: 7 }] {
        let whole = parse(input, expected());
        if let Ok(Parsed::Complete(_, length)) = &whole {
            assert!(*length <= input.len());
            assert_eq!(parse(&input[..*length], expected()), whole);
        }
        match parse(&input[..place], expected()) {
            Ok(Parsed::Partial) => {}
            part => assert_eq!(part, whole, "the first {place} bytes"),
        }
    }
}
