//! Measures contenders alternately. In each round, every contender does the same work, so
//! disturbances by other processes affect all contenders. The result is the median of the rounds.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::contender::{Contender, Requests};
use crate::spread::Spread;

/// The times of one decision in nanoseconds. Each is the median of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DecisionTimes {
    /// The wall-clock time: the time until all threads have finished, divided by the number of all
    /// decisions.
    pub wall: f64,
    /// The processor time of all threads, divided by the number of all decisions. Preemption by
    /// other processes does not affect it.
    pub processor: f64,
}

/// Measures `contenders` in `rounds` rounds. In each round, each contender runs one thread for each
/// element of `orders`. A thread makes `decisions` decisions on the subjects of its order.
#[must_use]
pub fn compare(
    contenders: &[&dyn Contender],
    orders: &[Vec<u32>],
    decisions: usize,
    rounds: usize,
) -> Vec<DecisionTimes> {
    let prepared: Vec<Vec<_>> = contenders
        .iter()
        .map(|contender| orders.iter().map(|order| contender.requests(order)).collect())
        .collect();
    let mut took: Vec<Vec<DecisionTimes>> = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds {
        // Each round begins with another contender.
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            took[index].push(time(&prepared[index], decisions));
        }
    }
    took.iter().map(|rounds| median(rounds)).collect()
}

/// Measures one round of one contender.
fn time(threads: &[Box<dyn Requests + '_>], decisions: usize) -> DecisionTimes {
    let start = Barrier::new(threads.len());
    let spans: Vec<Span> = thread::scope(|scope| {
        let running: Vec<_> = threads
            .iter()
            .map(|requests| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    run(&**requests, decisions)
                })
            })
            .collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let started = spans.iter().map(|span| span.started).min();
    let ended = spans.iter().map(|span| span.ended).max();
    let wall = ended.zip(started).map(|(ended, started)| ended - started).unwrap_or_default();
    let processor: Duration = spans.iter().map(|span| span.processor).sum();
    let each = |whole: Duration| whole.as_nanos() as f64 / (decisions * threads.len()) as f64;
    DecisionTimes { wall: each(wall), processor: each(processor) }
}

/// The times of one thread in one round.
struct Span {
    started: Instant,
    ended: Instant,
    processor: Duration,
}

fn run(requests: &dyn Requests, decisions: usize) -> Span {
    let before = processor_time();
    let started = Instant::now();
    black_box(requests.decide(decisions));
    let ended = Instant::now();
    Span { started, ended, processor: processor_time().saturating_sub(before) }
}

/// Returns the processor time that the current thread has used.
#[must_use]
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn median(rounds: &[DecisionTimes]) -> DecisionTimes {
    let middle = |of: fn(&DecisionTimes) -> f64| Spread::of(rounds.iter().map(of)).median;
    DecisionTimes { wall: middle(|took| took.wall), processor: middle(|took| took.processor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_each() {
        let rounds = [(9.0, 1.0), (2.0, 3.0), (5.0, 2.0)];
        let rounds = rounds.map(|(wall, processor)| DecisionTimes { wall, processor });
        assert_eq!(median(&rounds), DecisionTimes { wall: 5.0, processor: 2.0 });
    }
}
