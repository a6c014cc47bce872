//! Compares the memory store with `governor`'s keyed limiter: nanoseconds per decision and bytes
//! per key.
//!
//! `cargo run --release -p tollgate-bench --bin memory_vs_governor [subjects [rounds]]`

use std::alloc::System;
use std::error::Error;

use cap::Cap;
use clap::Parser;
use tollgate::{CounterClock, SystemClock};
use tollgate_bench::contender::{Allowance, CoarseClock, Contender, Governor, Keys, Tollgate};
use tollgate_bench::draw;
use tollgate_bench::report::Report;
use tollgate_bench::rounds::compare;

/// An allocator that counts the bytes that the program requests. It does not count the overhead of
/// the system's allocator.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The number of decisions that one thread makes in one round.
const DECISIONS: usize = 1_000_000;

/// Compares the memory store with governor's keyed limiter.
#[derive(Debug, Parser)]
struct Flags {
    /// The number of subjects
    #[arg(default_value_t = 1_000_000)]
    subjects: u32,
    /// How often each case is measured
    #[arg(default_value_t = 9)]
    rounds: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Flags { subjects, rounds } = Flags::parse();

    let mut report = Report::new();
    let mut case = |name: &str, contenders: &[Box<dyn Contender>], orders: &[Vec<u32>]| {
        let contenders: Vec<&dyn Contender> = contenders.iter().map(|one| &**one).collect();
        let names: Vec<_> = contenders.iter().map(|contender| contender.name()).collect();
        report.add(name, &names, &compare(&contenders, orders, DECISIONS, rounds));
    };

    let unlimited = contenders(Allowance::Unlimited)?;
    case("one hot key, 1 thread", &unlimited, &[vec![0]]);
    case("one hot key, 2 threads", &unlimited, &[vec![0], vec![0]]);
    case("one hot key, refused, 1 thread", &contenders(Allowance::Exhausted)?, &[vec![0]]);

    let all = contenders(Allowance::Unlimited)?;
    println!("{subjects} subjects, bytes per key:");
    let everyone = draw::each(subjects, 4);
    for contender in &all {
        let requests = contender.requests(&everyone);
        let bytes = allocated_by(|| _ = requests.decide(subjects as usize));
        println!("  {:34}{:6.1}", contender.name(), bytes as f64 / f64::from(subjects));
    }
    let uniform = |seed| draw::uniform(subjects, DECISIONS, seed);
    case("many keys, uniform, 1 thread", &all, &[uniform(1)]);
    case("many keys, uniform, 2 threads", &all, &[uniform(1), uniform(2)]);
    case("many keys, skewed, 1 thread", &all, &[draw::skewed(subjects, DECISIONS, 3)]);
    println!("\n{report}");
    Ok(())
}

/// Returns the contenders, none of which has made a charge. The first one is the baseline.
fn contenders(allowance: Allowance) -> Result<Vec<Box<dyn Contender>>, Box<dyn Error>> {
    Ok(vec![
        Box::new(Governor::new(allowance)),
        Box::new(Keys::new("tollgate, RateLimiter", allowance)?),
        Box::new(Tollgate::fixed_window("tollgate, fixed window", CounterClock::new(), allowance)?),
        Box::new(Tollgate::token_bucket("tollgate, token bucket", CounterClock::new(), allowance)?),
        Box::new(Tollgate::fixed_window("tollgate, fixed, system clock", SystemClock, allowance)?),
        Box::new(Tollgate::fixed_window("tollgate, fixed, coarse clock", CoarseClock, allowance)?),
    ])
}

/// Returns the number of bytes that `work` allocates and does not release.
fn allocated_by(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.allocated();
    work();
    ALLOCATOR.allocated().saturating_sub(before)
}
