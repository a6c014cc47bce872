//! Compares the memory store with `governor`'s keyed limiter: nanoseconds per decision and bytes
//! per key.
//!
//! `cargo run --release -p tollgate-bench --bin memory_vs_governor [subjects [rounds]]`

use std::alloc::System;
use std::error::Error;

use cap::Cap;
use tollgate_bench::contender::{Allowance, Contender, Governor, Tollgate};
use tollgate_bench::draw;
use tollgate_bench::report::Report;
use tollgate_bench::rounds::compare;

/// Counts what is allocated: bytes asked for, without what the allocator adds.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Decisions of one thread in one round.
const DECISIONS: usize = 1_000_000;
const SUBJECTS: u32 = 1_000_000;
const ROUNDS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let subjects = arguments.next().map_or(Ok(SUBJECTS), |given| given.parse())?;
    let rounds = arguments.next().map_or(Ok(ROUNDS), |given| given.parse())?;

    let mut report = Report::new();
    let mut case = |name: &str, contenders: &[&dyn Contender], orders: &[Vec<u32>]| {
        let names: Vec<_> = contenders.iter().map(|contender| contender.name()).collect();
        report.add(name, &names, &compare(contenders, orders, rounds));
    };

    let one = |allowance| -> Result<_, Box<dyn Error>> {
        let fixed_window = Tollgate::fixed_window(1, allowance)?;
        Ok((Governor::new(1, allowance), fixed_window, Tollgate::token_bucket(1, allowance)?))
    };
    let hot = || draw::hot(DECISIONS);
    let (a, b, c) = one(Allowance::Ample)?;
    case("one hot key, 1 thread", &[&a, &b, &c], &[hot()]);
    case("one hot key, 2 threads", &[&a, &b, &c], &[hot(), hot()]);
    let (a, b, c) = one(Allowance::Exhausted)?;
    case("one hot key, refused, 1 thread", &[&a, &b, &c], &[hot()]);

    let a = Governor::new(subjects, Allowance::Ample);
    let b = Tollgate::fixed_window(subjects, Allowance::Ample)?;
    let c = Tollgate::token_bucket(subjects, Allowance::Ample)?;
    let all: [&dyn Contender; 3] = [&a, &b, &c];
    println!("{subjects} subjects, bytes per key:");
    for contender in all {
        let bytes = allocated_by(|| (0..subjects).for_each(|index| _ = contender.charge(index)));
        println!("  {:24}{:6.1}", contender.name(), bytes as f64 / f64::from(subjects));
    }
    let uniform = |seed| draw::uniform(subjects, DECISIONS, seed);
    case("many keys, uniform, 1 thread", &all, &[uniform(1)]);
    case("many keys, uniform, 2 threads", &all, &[uniform(1), uniform(2)]);
    case("many keys, skewed, 1 thread", &all, &[draw::skewed(subjects, DECISIONS, 3)]);
    println!("\n{report}");
    Ok(())
}

/// The bytes that `work` leaves allocated.
fn allocated_by(work: impl FnOnce()) -> usize {
    let before = ALLOCATOR.allocated();
    work();
    ALLOCATOR.allocated().saturating_sub(before)
}
