//! The circuit breaker of a server.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum CircuitState {
    /// The server answers, and calls are sent to it.
    Closed = 0,
    /// The connection was just lost, and the first attempt to open a new connection is under way.
    /// Callers wait for this attempt within their deadlines.
    Seeking = 1,
    /// The server does not answer, and callers do not wait. One probe at a time tests whether the
    /// server answers again.
    Open = 2,
}

/// The circuit breaker of one server (after Nygard, "Release It!", 2007).
///
/// The circuit breaker counts decisions that missed their deadline, not calls. Many decisions can
/// wait for a frozen server, but only the first few of them time out before the circuit opens. A
/// decision counts only if the server answered no call while the decision waited, because a server
/// that answers other calls is slow or busy, and not frozen. Only a verified connection closes the
/// circuit.
#[derive(Debug)]
pub struct CircuitBreaker {
    /// The state in the lowest two bits, and in the other bits the generation of the connection
    /// that closed the circuit last. Each new connection of a link has the next generation number.
    ///
    /// State and generation change together, so a missed deadline never opens the circuit of a
    /// later connection. No caller reports a fault of that connection while its circuit is open, so
    /// the circuit would stay open.
    state: AtomicU64,
    /// The number of consecutive missed deadlines. An answer resets the number to 0.
    misses: AtomicU32,
    allowed: u32,
    opened: AtomicU64,
    /// The number of calls that the server answered.
    answers: AtomicU64,
}

/// The server's progress at the time when a decision was submitted: the connection in use, and the
/// number of calls that the server had answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The generation of the connection that closed the circuit last.
    generation: u64,
    /// The number of calls that the server had answered.
    answers: u64,
}

impl Progress {
    /// Returns the generation of the connection that had closed the circuit last. The generation of
    /// a connection is its number among the connections of the link.
    #[must_use]
    pub const fn generation(self) -> u64 {
        self.generation
    }
}

/// The number of the bits of [`CircuitBreaker::state`] that have the state, and their mask.
const STATE_BITS: u32 = 2;
const STATE: u64 = (1 << STATE_BITS) - 1;

/// Returns `state` with the same generation and the state `to`.
const fn with(state: u64, to: CircuitState) -> u64 {
    state & !STATE | to as u64
}

impl CircuitBreaker {
    /// Creates a circuit breaker that opens after `allowed` consecutive missed deadlines. The
    /// initial state is [`CircuitState::Seeking`].
    #[must_use]
    pub fn new(allowed: u32) -> Self {
        Self {
            state: AtomicU64::new(CircuitState::Seeking as u64),
            misses: AtomicU32::new(0),
            allowed: allowed.max(1),
            opened: AtomicU64::new(0),
            answers: AtomicU64::new(0),
        }
    }

    /// Returns the current state.
    #[must_use]
    pub fn circuit_state(&self) -> CircuitState {
        match self.state.load(Ordering::Acquire) & STATE {
            0 => CircuitState::Closed,
            1 => CircuitState::Seeking,
            _ => CircuitState::Open,
        }
    }

    /// Records that the server answered a call.
    pub fn answered(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        // The value is read before it is written, because reading a shared cache line that does not
        // change is fast.
        if self.misses.load(Ordering::Relaxed) != 0 {
            self.misses.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the server's progress so far.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let answers = self.answers.load(Ordering::Relaxed);
        Progress { generation: self.state.load(Ordering::Acquire) >> STATE_BITS, answers }
    }

    /// Records that a decision missed its deadline. `submitted` is the server's progress when the
    /// decision was submitted. Returns true if the circuit opened because of this decision.
    #[must_use]
    pub fn record_miss(&self, submitted: Progress) -> bool {
        let state = self.state.load(Ordering::Acquire);
        // A miss does not count if the decision waited for an earlier connection, or if the server
        // answered other calls while the decision waited.
        if state != with(submitted.generation << STATE_BITS, CircuitState::Closed)
            || submitted.answers != self.answers.load(Ordering::Relaxed)
        {
            return false;
        }
        let misses = self.misses.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        misses >= self.allowed && self.open_from(state)
    }

    /// Opens the circuit if its state and generation are still `state`, in which the circuit is
    /// closed. Returns true if the circuit opened.
    fn open_from(&self, state: u64) -> bool {
        let open = with(state, CircuitState::Open);
        let opened = self.state.compare_exchange(state, open, Ordering::AcqRel, Ordering::Relaxed);
        if opened.is_ok() {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        opened.is_ok()
    }

    /// Opens the circuit. Returns true if the circuit was not open before.
    pub fn open(&self) -> bool {
        let opens = self.turn(CircuitState::Open) != CircuitState::Open as u64;
        if opens {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        opens
    }

    /// Records that the connection is lost and that the link tries to open a new connection.
    pub fn seek(&self) {
        self.misses.store(0, Ordering::Relaxed);
        self.turn(CircuitState::Seeking);
    }

    /// Changes the state to `to` and keeps the generation. Returns the number of the state before.
    fn turn(&self, to: CircuitState) -> u64 {
        let turned = |state| Some(with(state, to));
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, turned);
        before.unwrap_or_else(|state| state) & STATE
    }

    /// Closes the circuit after a successful probe, which opened the connection `generation`.
    pub fn close(&self, generation: u64) {
        self.misses.store(0, Ordering::Relaxed);
        let closed = with(generation << STATE_BITS, CircuitState::Closed);
        self.state.store(closed, Ordering::Release);
    }

    /// Returns the number of times that the circuit has opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the current progress of `circuit`, but with the generation `generation`.
    fn of(circuit: &CircuitBreaker, generation: u64) -> Progress {
        Progress { generation, ..circuit.progress() }
    }

    #[test]
    fn only_misses_in_a_row_open_it() {
        let circuit = CircuitBreaker::new(3);
        circuit.close(7);
        assert!(!circuit.record_miss(of(&circuit, 7)));
        assert!(!circuit.record_miss(of(&circuit, 7)));
        circuit.answered();
        assert!(!circuit.record_miss(of(&circuit, 7)));
        assert!(!circuit.record_miss(of(&circuit, 7)));
        assert_eq!(circuit.circuit_state(), CircuitState::Closed);
        assert!(circuit.record_miss(of(&circuit, 7)), "the third in a row opens it");
        assert_eq!(circuit.circuit_state(), CircuitState::Open);
        assert!(!circuit.record_miss(of(&circuit, 7)), "it opens once");
        assert_eq!(circuit.opened(), 1);
    }

    #[test]
    fn a_decision_that_waited_while_others_were_answered_does_not_count() {
        let circuit = CircuitBreaker::new(2);
        circuit.close(7);
        let waiting = circuit.progress();
        circuit.answered();
        for _ in 0..9 {
            assert!(!circuit.record_miss(waiting));
        }
        assert!(!circuit.record_miss(circuit.progress()));
        assert!(circuit.record_miss(circuit.progress()), "nobody was answered");
    }

    #[test]
    fn a_miss_that_is_counted_late_does_not_open_the_circuit_of_a_later_connection() {
        let circuit = CircuitBreaker::new(1);
        circuit.close(7);
        // The thread that counts the miss is interrupted here, until the link has reconnected.
        let closed = circuit.state.load(Ordering::Acquire);
        circuit.seek();
        circuit.close(8);
        assert!(!circuit.open_from(closed));
        assert_eq!(circuit.circuit_state(), CircuitState::Closed);
        assert_eq!((circuit.opened(), circuit.progress().generation()), (0, 8));
        assert!(circuit.record_miss(circuit.progress()), "a miss of the later connection opens it");
    }

    #[test]
    fn an_answer_that_comes_late_does_not_close_it() {
        let circuit = CircuitBreaker::new(1);
        assert_eq!(circuit.circuit_state(), CircuitState::Seeking);
        circuit.close(7);
        assert!(
            !circuit.record_miss(of(&circuit, 6)),
            "what another connection missed does not count"
        );
        assert!(circuit.record_miss(of(&circuit, 7)));
        circuit.answered();
        assert_eq!(circuit.circuit_state(), CircuitState::Open);
        circuit.close(7);
        assert_eq!(circuit.circuit_state(), CircuitState::Closed);
        circuit.seek();
        assert_eq!(circuit.circuit_state(), CircuitState::Seeking);
        assert!(circuit.open() && !circuit.open());
        assert_eq!(circuit.opened(), 2);
    }
}
