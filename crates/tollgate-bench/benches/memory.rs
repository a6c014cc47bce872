//! Measures single cases of the memory store: `cargo bench -p tollgate-bench --bench memory`.
//!
//! One iteration makes a thousand decisions, because a single decision is too short to be measured
//! precisely.

use divan::Bencher;
use divan::counter::ItemsCount;
use tollgate::{Clock, SystemClock};
use tollgate_bench::contender::{Allowance, CoarseClock, Contender, Governor, Tollgate};
use tollgate_bench::draw;

const DECISIONS: usize = 1_000;
const SUBJECTS: u32 = 1_000_000;

fn main() {
    divan::main();
}

#[divan::bench]
fn system_clock(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| SystemClock.now());
}

#[divan::bench]
fn coarse_clock(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| CoarseClock.now());
}

#[divan::bench(threads = [1, 2])]
fn hot_key_governor(bencher: Bencher<'_, '_>) {
    hot_key(bencher, &Governor::new(Allowance::Unlimited));
}

#[divan::bench(threads = [1, 2])]
fn hot_key_tollgate(bencher: Bencher<'_, '_>) {
    hot_key(bencher, &tollgate());
}

#[divan::bench]
fn many_keys_governor(bencher: Bencher<'_, '_>) {
    many_keys(bencher, &Governor::new(Allowance::Unlimited));
}

#[divan::bench]
fn many_keys_tollgate(bencher: Bencher<'_, '_>) {
    many_keys(bencher, &tollgate());
}

fn tollgate() -> Tollgate<SystemClock> {
    Tollgate::fixed_window("tollgate", SystemClock, Allowance::Unlimited).unwrap()
}

fn hot_key(bencher: Bencher<'_, '_>, limiter: &impl Contender) {
    let requests = limiter.requests(&[0]);
    bencher.counter(ItemsCount::new(DECISIONS)).bench(|| requests.decide(DECISIONS));
}

fn many_keys(bencher: Bencher<'_, '_>, limiter: &impl Contender) {
    limiter.requests(&draw::each(SUBJECTS, 1)).decide(SUBJECTS as usize);
    let requests = limiter.requests(&draw::uniform(SUBJECTS, SUBJECTS as usize, 2));
    bencher.counter(ItemsCount::new(SUBJECTS)).bench_local(|| requests.decide(SUBJECTS as usize));
}
