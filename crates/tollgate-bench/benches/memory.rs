//! Single cases of the memory store: `cargo bench -p tollgate-bench --bench memory`.

use divan::{Bencher, black_box};
use tollgate::{Clock, SystemClock};
use tollgate_bench::contender::{Allowance, Contender, Governor, Tollgate};
use tollgate_bench::draw::Generator;

const SUBJECTS: u32 = 1_000_000;

fn main() {
    divan::main();
}

#[divan::bench]
fn clock(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| SystemClock.now());
}

#[divan::bench(threads = [1, 2])]
fn hot_key_governor(bencher: Bencher<'_, '_>) {
    let limiter = Governor::new(1, Allowance::Ample);
    bencher.bench(|| limiter.charge(black_box(0)));
}

#[divan::bench(threads = [1, 2])]
fn hot_key_tollgate(bencher: Bencher<'_, '_>) {
    let limiter = Tollgate::fixed_window(1, Allowance::Ample).unwrap();
    bencher.bench(|| limiter.charge(black_box(0)));
}

#[divan::bench]
fn many_keys_governor(bencher: Bencher<'_, '_>) {
    many_keys(bencher, &Governor::new(SUBJECTS, Allowance::Ample));
}

#[divan::bench]
fn many_keys_tollgate(bencher: Bencher<'_, '_>) {
    many_keys(bencher, &Tollgate::fixed_window(SUBJECTS, Allowance::Ample).unwrap());
}

fn many_keys(bencher: Bencher<'_, '_>, limiter: &impl Contender) {
    (0..SUBJECTS).for_each(|index| _ = limiter.charge(index));
    let mut generator = Generator::new(1);
    bencher.bench_local(|| limiter.charge(generator.below(SUBJECTS)));
}
