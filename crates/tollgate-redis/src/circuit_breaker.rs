//! Whether a server is worth waiting for.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Decisions in a row that may miss their deadline before the circuit opens.
pub(crate) const DEFAULT_FAILURE_THRESHOLD: u32 = 5;

/// The shortest and the longest time from a failed probe to the next one.
const PROBE_AFTER: Duration = Duration::from_millis(20);
const PROBE_AT_LEAST_EVERY: Duration = Duration::from_millis(200);

/// What the circuit lets callers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CircuitState {
    /// The server answers: ask it.
    Closed = 0,
    /// The connection was lost just now, and the first attempt at another is under way: wait for
    /// it, within the deadline.
    Seeking = 1,
    /// The server does not answer: do not wait. One probe at a time finds out when it does.
    Open = 2,
}

/// One server's circuit breaker (after Nygard, "Release It!", 2007).
///
/// It counts decisions that missed their deadline, not calls: of the many decisions that wait for
/// a frozen server, only the first few wait in vain. It is closed by a proven connection alone.
#[derive(Debug)]
pub(crate) struct CircuitBreaker {
    circuit_state: AtomicU8,
    /// Deadlines missed in a row; reset by every answer.
    missed: AtomicU32,
    allowed: u32,
    opened: AtomicU64,
    /// Which connection closed it.
    generation: AtomicU64,
}

impl CircuitBreaker {
    /// A circuit that opens after `allowed` missed deadlines in a row, and at first seeks.
    pub(crate) fn new(allowed: u32) -> Self {
        Self {
            circuit_state: AtomicU8::new(CircuitState::Seeking as u8),
            missed: AtomicU32::new(0),
            allowed: allowed.max(1),
            opened: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        }
    }

    /// What callers may do now.
    pub(crate) fn circuit_state(&self) -> CircuitState {
        match self.circuit_state.load(Ordering::Acquire) {
            0 => CircuitState::Closed,
            1 => CircuitState::Seeking,
            _ => CircuitState::Open,
        }
    }

    /// The server answered a call.
    pub(crate) fn answered(&self) {
        // Read first: a shared cache line that does not change costs nothing.
        if self.missed.load(Ordering::Relaxed) != 0 {
            self.missed.store(0, Ordering::Relaxed);
        }
    }

    /// A decision that was asked for under the connection `generation` missed its deadline. True if
    /// it is the one that opens the circuit.
    #[must_use]
    pub(crate) fn missed(&self, generation: u64) -> bool {
        // What an earlier connection missed says nothing of this one.
        if generation != self.generation() || self.circuit_state() != CircuitState::Closed {
            return false;
        }
        let missed = self.missed.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        missed >= self.allowed && self.open()
    }

    /// The server is not worth waiting for. True if the circuit was not open before.
    pub(crate) fn open(&self) -> bool {
        let opens = self.circuit_state.swap(CircuitState::Open as u8, Ordering::AcqRel)
            != CircuitState::Open as u8;
        if opens {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        opens
    }

    /// The connection is lost; another is sought.
    pub(crate) fn seek(&self) {
        self.missed.store(0, Ordering::Relaxed);
        self.circuit_state.store(CircuitState::Seeking as u8, Ordering::Release);
    }

    /// A probe succeeded, and made the connection `generation`.
    pub(crate) fn close(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
        self.missed.store(0, Ordering::Relaxed);
        self.circuit_state.store(CircuitState::Closed as u8, Ordering::Release);
    }

    /// The connection that closed the circuit last.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How often the circuit has opened.
    pub(crate) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}

/// How long to wait after the `failed`th failure in a row, counted from 0, before the next probe.
///
/// Doubles up to a bound and is spread by `draw`, a random number, over a quarter to either side:
/// many nodes that lost the same server do not come back in step.
pub(crate) fn probe_delay(failed: u32, draw: u64) -> Duration {
    let doubled = PROBE_AFTER.saturating_mul(1 << failed.min(8)).min(PROBE_AT_LEAST_EVERY);
    let spread = u64::try_from(doubled.as_micros() / 2).unwrap_or(u64::MAX);
    doubled * 3 / 4 + Duration::from_micros(draw % (spread + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_misses_in_a_row_open_it() {
        let circuit = CircuitBreaker::new(3);
        circuit.close(7);
        assert!(!circuit.missed(7));
        assert!(!circuit.missed(7));
        circuit.answered();
        assert!(!circuit.missed(7));
        assert!(!circuit.missed(7));
        assert_eq!(circuit.circuit_state(), CircuitState::Closed);
        assert!(circuit.missed(7), "the third in a row opens it");
        assert_eq!(circuit.circuit_state(), CircuitState::Open);
        assert!(!circuit.missed(7), "it opens once");
        assert_eq!(circuit.opened(), 1);
    }

    #[test]
    fn an_answer_that_comes_late_does_not_close_it() {
        let circuit = CircuitBreaker::new(1);
        assert_eq!(circuit.circuit_state(), CircuitState::Seeking);
        circuit.close(7);
        assert!(!circuit.missed(6), "what another connection missed does not count");
        assert!(circuit.missed(7));
        circuit.answered();
        assert_eq!(circuit.circuit_state(), CircuitState::Open);
        circuit.close(7);
        assert_eq!(circuit.circuit_state(), CircuitState::Closed);
        circuit.seek();
        assert_eq!(circuit.circuit_state(), CircuitState::Seeking);
        assert!(circuit.open() && !circuit.open());
        assert_eq!(circuit.opened(), 2);
    }

    #[test]
    fn probes_are_neither_hasty_nor_rare() {
        for (failed, least, most) in [(0, 15, 25), (1, 30, 50), (3, 120, 200), (u32::MAX, 150, 250)]
        {
            for draw in [0, 1, 7_919, u64::MAX] {
                let delay = probe_delay(failed, draw);
                assert!(delay >= Duration::from_millis(least), "{failed}: {delay:?}");
                assert!(delay <= Duration::from_millis(most), "{failed}: {delay:?}");
            }
        }
        assert_ne!(probe_delay(3, 0), probe_delay(3, 12_345));
    }
}
