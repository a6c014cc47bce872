//! Timing in turns: each round lets every contender do the same work, so that a noisy neighbour
//! disturbs them alike, and the median round counts.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::contender::Contender;

/// What one decision took, in nanoseconds: the median of the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    /// By the wall clock, over all threads: the whole time divided by all decisions.
    pub wall: f64,
    /// Processor time of the threads: what preemption by others does not touch.
    pub processor: f64,
}

/// Lets each of `contenders` decide on every element of `orders`, one thread for each order, in
/// `rounds` rounds.
#[must_use]
pub fn compare(contenders: &[&dyn Contender], orders: &[Vec<u32>], rounds: usize) -> Vec<Took> {
    let mut took: Vec<Vec<Took>> = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds {
        // Who begins changes from round to round.
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            took[index].push(time(contenders[index], orders));
        }
    }
    took.iter().map(|rounds| median(rounds)).collect()
}

/// One round of one contender.
fn time(contender: &dyn Contender, orders: &[Vec<u32>]) -> Took {
    let decisions: usize = orders.iter().map(Vec::len).sum();
    let start = Barrier::new(orders.len());
    let spans: Vec<(Instant, Instant, Duration)> = thread::scope(|scope| {
        let threads: Vec<_> = orders
            .iter()
            .map(|order| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    run(contender, order)
                })
            })
            .collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let begun = spans.iter().map(|span| span.0).min();
    let ended = spans.iter().map(|span| span.1).max();
    let wall = ended.zip(begun).map(|(ended, begun)| ended - begun).unwrap_or_default();
    let processor: Duration = spans.iter().map(|span| span.2).sum();
    let each = |whole: Duration| whole.as_nanos() as f64 / decisions as f64;
    Took { wall: each(wall), processor: each(processor) }
}

fn run(contender: &dyn Contender, order: &[u32]) -> (Instant, Instant, Duration) {
    let processor = processor_time();
    let begun = Instant::now();
    for index in order {
        black_box(contender.charge(black_box(*index)));
    }
    (begun, Instant::now(), processor_time().saturating_sub(processor))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn median(rounds: &[Took]) -> Took {
    let middle = |of: fn(&Took) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Took { wall: middle(|took| took.wall), processor: middle(|took| took.processor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_each() {
        let rounds = [(9.0, 1.0), (2.0, 3.0), (5.0, 2.0)];
        let rounds = rounds.map(|(wall, processor)| Took { wall, processor });
        assert_eq!(median(&rounds), Took { wall: 5.0, processor: 2.0 });
    }
}
