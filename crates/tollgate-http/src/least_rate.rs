//! The least rate at which a client must send a request body or read a response.
//!
//! The module is written by hand, because the timeouts of `tower-http` only bound a pause: a client
//! that sends one byte before each pause ends could hold a request for ever. With the default
//! settings, a least rate bounds this time to 10 s, plus 64 s if the client is 64 KiB ahead of the
//! least rate.

use std::{
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::Instant;

use crate::deadline::Deadline;

/// The default least rate of a client.
pub const LEAST_BYTES_PER_SECOND: u32 = 1_024;

/// The default time for which a client may stay below the least rate.
pub const LEAST_RATE_GRACE: Duration = Duration::from_secs(10);

/// The most bytes that a client can be ahead of the least rate. Bytes that a client transferred
/// faster than the least rate count in advance, up to this number.
const BURST_BYTES: u64 = 64 * 1_024;

/// A least rate in bytes per second, and the time for which a client may stay below it.
#[derive(Debug, Clone, Copy)]
pub struct RateTerms {
    /// The least rate in bytes per second. 0 means no least rate.
    bytes_per_second: u32,
    grace: Duration,
}

/// The time budget of a client for a transfer.
///
/// It is a token bucket of time: each byte adds the time that one byte takes at the least rate, and
/// waiting for the client uses up time. A client is too slow when the bucket is empty, or after one
/// pause that is too long.
#[derive(Debug)]
pub struct LeastRate {
    terms: RateTerms,
    left: Duration,
    waiting_since: Option<Instant>,
    pause: Deadline,
}

/// Why a client is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooSlow {
    /// No byte was transferred for the longest pause that is allowed.
    Stalled,
    /// Bytes were transferred, but more slowly than the least rate requires.
    BelowRate,
}

impl RateTerms {
    /// No least rate. Only the length of a pause is bounded.
    pub const NONE: Self = Self { bytes_per_second: 0, grace: Duration::ZERO };

    /// Creates terms under which a client must transfer `bytes_per_second` on average, and may stay
    /// below this rate for the time `grace`. 0 bytes per second means no least rate.
    pub const fn new(bytes_per_second: u32, grace: Duration) -> Self {
        Self { bytes_per_second, grace }
    }

    /// Returns the time that a client needs for `bytes` bytes if it transfers them at the least
    /// rate.
    fn time_for(self, bytes: u64) -> Duration {
        let micros = bytes.saturating_mul(1_000_000) / u64::from(self.bytes_per_second.max(1));
        Duration::from_micros(micros)
    }

    fn most(self) -> Duration {
        self.grace + self.time_for(BURST_BYTES)
    }
}

impl LeastRate {
    /// Begins the budget of a transfer in which no pause may exceed `longest_pause`.
    pub fn new(terms: RateTerms, longest_pause: Duration) -> Self {
        let pause = Deadline::new(longest_pause);
        Self { terms, left: terms.grace, waiting_since: None, pause }
    }

    /// Records that the client has transferred `bytes` bytes. Ends the wait for the client, and
    /// adds the time that these bytes take at the least rate to the budget.
    pub fn moved(&mut self, bytes: usize) {
        if let Some(since) = self.waiting_since.take() {
            self.left = self.left.saturating_sub(since.elapsed());
            self.pause.clear();
        }
        let gained = self.terms.time_for(bytes as u64);
        self.left = self.left.saturating_add(gained).min(self.terms.most());
    }

    /// Starts the wait for the client if it has not started. Returns `Ready` once the client is too
    /// slow, with the reason.
    pub fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        if self.terms.bytes_per_second == 0 {
            return self.poll_stalled(cx);
        }
        self.waiting_since.get_or_insert_with(Instant::now);
        let limit = self.left.min(self.pause.limit());
        ready!(self.pause.poll_passed_within(cx, limit));
        Poll::Ready(if limit < self.pause.limit() { TooSlow::BelowRate } else { TooSlow::Stalled })
    }

    /// Works like [`poll_too_slow`](Self::poll_too_slow), for bytes that [`moved`](Self::moved) has
    /// already counted although a buffer of the transport still contains them. The time that these
    /// bytes take at the least rate can be longer than the longest pause, so only the budget limits
    /// this wait. Without a least rate, the longest pause limits it.
    pub fn poll_unflushed(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        if self.terms.bytes_per_second == 0 {
            return self.poll_stalled(cx);
        }
        self.waiting_since.get_or_insert_with(Instant::now);
        self.pause.poll_passed_within(cx, self.left).map(|()| TooSlow::BelowRate)
    }

    /// Works like [`poll_too_slow`](Self::poll_too_slow), but ignores the least rate: it returns
    /// `Ready` only after a pause that is too long.
    pub fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<TooSlow> {
        // The start of the wait is set, so `moved` ends this wait as well.
        self.waiting_since.get_or_insert_with(Instant::now);
        self.pause.poll_passed(cx).map(|()| TooSlow::Stalled)
    }

    /// Returns the longest pause that the client may make.
    pub fn longest_pause(&self) -> Duration {
        self.pause.limit()
    }

    /// Returns the least rate in bytes per second; 0 means no least rate.
    pub fn bytes_per_second(&self) -> u32 {
        self.terms.bytes_per_second
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn terms(bytes_per_second: u32, grace: u64) -> RateTerms {
        RateTerms::new(bytes_per_second, Duration::from_millis(grace))
    }

    #[test]
    fn bytes_add_time_up_to_the_burst_and_the_grace() {
        let mut rate = LeastRate::new(terms(1_024, 10_000), Duration::from_secs(60));
        assert_eq!(rate.left, Duration::from_secs(10));
        rate.moved(2_048);
        assert_eq!(rate.left, Duration::from_secs(12));
        rate.moved(1 << 30);
        assert_eq!(rate.left, Duration::from_secs(74));
    }

    #[tokio::test]
    async fn a_client_is_too_slow_when_its_time_is_used_up_or_its_pause_too_long() {
        let (long, short) = (Duration::from_secs(60), Duration::from_millis(20));
        let mut below = LeastRate::new(terms(1_024, 20), long);
        assert_eq!(poll_fn(|cx| below.poll_too_slow(cx)).await, TooSlow::BelowRate);
        let mut stalled = LeastRate::new(terms(1_024, 10_000), short);
        assert_eq!(poll_fn(|cx| stalled.poll_too_slow(cx)).await, TooSlow::Stalled);
        let mut off = LeastRate::new(terms(0, 1), short);
        assert_eq!(poll_fn(|cx| off.poll_too_slow(cx)).await, TooSlow::Stalled);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_in_a_buffer_of_the_transport_have_the_time_of_the_least_rate() {
        let pause = Duration::from_secs(20);
        for (bytes_per_second, seconds, reason) in
            [(1_024, 10 + 64, TooSlow::BelowRate), (0, 20, TooSlow::Stalled)]
        {
            let mut rate = LeastRate::new(terms(bytes_per_second, 10_000), pause);
            rate.moved(64 * 1_024);
            let began = Instant::now();
            assert_eq!(poll_fn(|cx| rate.poll_unflushed(cx)).await, reason);
            assert_eq!(began.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test]
    async fn only_waiting_uses_time_up() {
        let mut rate = LeastRate::new(terms(1_024, 10_000), Duration::from_secs(60));
        let is_waiting = |rate: &mut LeastRate, cx: &mut Context<'_>| {
            assert!(rate.poll_too_slow(cx).is_pending());
            Poll::Ready(())
        };
        poll_fn(|cx| is_waiting(&mut rate, cx)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        rate.moved(0);
        let left = rate.left;
        assert!(left <= Duration::from_millis(9_995), "{left:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
        rate.moved(0);
        assert_eq!(rate.left, left);
    }
}
