//! Measures the longest single call of the memory store while the store grows. A shard is locked
//! while its table grows, so this is the longest time for which growth delays a decision.
//!
//! `cargo run --release -p tollgate-bench --bin memory_growth [keys [rounds]]`

use std::alloc::System;
use std::error::Error;
use std::time::Duration;

use cap::Cap;
use clap::Parser;
use tollgate::store::memory::{Bounds, Memory};
use tollgate::{Quota, RateLimiter};
use tollgate_bench::rounds::processor_time;
use tollgate_bench::spread::Spread;

/// An allocator that counts the allocated bytes. A call during which their number rises is a call
/// that grew a table.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Measures the longest single call of the memory store while the store grows.
#[derive(Debug, Parser)]
struct Flags {
    /// The number of keys that are added to an empty store
    #[arg(default_value_t = 1_000_000)]
    keys: u32,
    /// How often an empty store is filled
    #[arg(default_value_t = 9)]
    rounds: usize,
}

/// The processor times of the calls of one round.
#[derive(Debug, Default)]
struct Calls {
    /// The calls that grew a table.
    growing: Vec<Duration>,
    /// The longest other call.
    longest_other: Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Flags { keys, rounds } = Flags::parse();
    let mut filled = Vec::new();
    for _ in 0..rounds.max(1) {
        let bounds = Bounds { max_entries: keys as usize, max_bytes: usize::MAX };
        let quota = Quota::per_hour(1_000_000);
        let limiter = RateLimiter::try_per_key(quota)?.store(Memory::new(bounds));
        filled.push(check_all(&limiter, keys));
    }
    let micros = |took: Duration| took.as_nanos() as f64 / 1e3;
    let of_each = |of: fn(&Calls) -> Duration| Spread::of(filled.iter().map(of).map(micros));
    let growing = filled.iter().flat_map(|calls| calls.growing.iter().copied().map(micros));
    println!("{keys} keys, {rounds} rounds, processor time of a call in µs:");
    println!("the longest call of a round that grew a table: {:.0}", of_each(longest_growing));
    println!("the median call that grew a table: {:.1}", Spread::of(growing).median);
    println!("the longest other call of a round: {:.0}", of_each(|calls| calls.longest_other));
    Ok(())
}

fn longest_growing(calls: &Calls) -> Duration {
    calls.growing.iter().copied().max().unwrap_or_default()
}

/// Checks each key once. The time of a call is the processor time of the thread. It does not include
/// the time in which other programs used the processor, but it includes interrupts.
fn check_all(limiter: &RateLimiter, keys: u32) -> Calls {
    let mut growing = Vec::with_capacity(keys as usize);
    let mut longest_other = Duration::ZERO;
    for number in 0..keys {
        let key = format!("customer-{number:010}");
        let (allocated, begun) = (ALLOCATOR.allocated(), processor_time());
        let decision = limiter.try_check(&key);
        let took = processor_time().saturating_sub(begun);
        assert!(decision.is_admitted(), "no quota is used up");
        if ALLOCATOR.allocated() > allocated {
            growing.push(took);
        } else {
            longest_other = longest_other.max(took);
        }
    }
    Calls { growing, longest_other }
}
