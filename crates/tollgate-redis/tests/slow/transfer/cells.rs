//! Cells of any limit. Some cells result from decisions, and some are valid cells that no decision
//! produces.

use tollgate_conformance::Random;
use tollgate_core::algo::{
    concurrency, fixed_window, sliding_log, sliding_window, token_bucket, two_bucket,
};
use tollgate_core::{
    Algorithm, Cell, ChargeId, Cost, Limit, MAX_EXACT, Operation, Timestamp, decide,
};

/// Returns two cells of one subject with times near `now`.
pub(crate) fn two_accounts(random: &mut Random, limit: &Limit, now: u64) -> (Cell, Cell) {
    let one = loop {
        let cell = if random.chance(50) {
            any_cell(random, limit, now)
        } else {
            charged(random, limit, now, None)
        };
        if let Some(cell) = cell.filter(is_readable) {
            break cell;
        }
    };
    let common = if random.chance(60) { Some(one.clone()) } else { None };
    let other = loop {
        let cell = match &common {
            Some(common) => charged(random, limit, now, Some(common.clone())),
            None => any_cell(random, limit, now),
        };
        if let Some(cell) = cell.filter(is_readable) {
            break cell;
        }
    };
    if random.chance(50) { (one, other) } else { (other, one) }
}

fn is_readable(cell: &Cell) -> bool {
    Cell::from_bytes(&cell.to_bytes()).as_ref() == Some(cell)
}

/// Returns the cell after a few random charges on `cell`.
fn charged(random: &mut Random, limit: &Limit, now: u64, cell: Option<Cell>) -> Option<Cell> {
    let window = limit.window().get();
    let mut cell = cell;
    for _ in 0..random.within(1..=6) {
        let now = near(random, now, window / 2 + 1);
        let cost = number(random, limit.capacity()).min(limit.capacity()).max(1);
        let (cost, id) = (Cost::new(cost).expect("a cost"), ChargeId(any_id(random)));
        cell = decide(cell, limit, Operation::Charge { cost, id }, Timestamp::from_millis(now)).1;
    }
    cell
}

/// Returns a cell with random numbers, for the algorithm of `limit`.
fn any_cell(random: &mut Random, limit: &Limit, now: u64) -> Option<Cell> {
    let ahead = limit.window().get() + limit.skew_max().get() + 1;
    let at = |random: &mut Random| Timestamp::from_millis(near(random, now, ahead));
    let used = |random: &mut Random| number(random, limit.capacity());
    Some(match limit.algorithm() {
        Algorithm::FixedWindow(_) => {
            Cell::FixedWindow(fixed_window::State { used: used(random), resets_at: at(random) })
        }
        Algorithm::SlidingWindow(of) => {
            let reach = of.window().get() / of.precision().get() + 2;
            let head = now / of.precision().get();
            let blocks = rising(random, head, reach).into_iter();
            let block = |number| sliding_window::Block { number, used: used(random) };
            Cell::SlidingWindow(sliding_window::State { blocks: blocks.map(block).collect() })
        }
        Algorithm::TwoBucket(of) => Cell::TwoBucket(two_bucket::State {
            bucket: near(random, now / of.window().get(), 2),
            previous: used(random),
            current: used(random),
        }),
        Algorithm::SlidingLog(of) => {
            let entries = rising(random, now, of.window().get() + 2).into_iter();
            let entry =
                |at| sliding_log::Entry { at: Timestamp::from_millis(at), used: used(random) };
            Cell::SlidingLog(sliding_log::State { entries: entries.map(entry).collect() })
        }
        Algorithm::TokenBucket(of) => {
            let full = of.burst() * of.window().get();
            let level = number(random, full);
            Cell::TokenBucket(token_bucket::State { level, at: at(random) })
        }
        Algorithm::Concurrency(_) => Cell::Concurrency(any_leases(random, at)),
    })
}

fn any_leases(random: &mut Random, at: impl Fn(&mut Random) -> Timestamp) -> concurrency::State {
    let mut leases: Vec<concurrency::Permit> = Vec::new();
    for _ in 0..random.within(1..=8) {
        let id = ChargeId(any_id(random));
        if leases.iter().all(|lease| lease.id != id) {
            let used = number(random, 5).max(1);
            leases.push(concurrency::Permit { id, used, expires_at: at(random) });
        }
    }
    leases.sort_by_key(|lease| lease.expires_at);
    concurrency::State { permits: leases }
}

/// Returns one of ten ids. With so few ids, two cells often have some ids in common.
fn any_id(random: &mut Random) -> u128 {
    u128::MAX - u128::from(random.within(0..=9))
}

/// Returns positions in ascending order, at most about `reach` away from `place`.
fn rising(random: &mut Random, place: u64, reach: u64) -> Vec<u64> {
    let mut places: Vec<u64> =
        (0..random.within(1..=12)).map(|_| near(random, place, reach)).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Returns a number within `reach` of `place`, usually not above it.
fn near(random: &mut Random, place: u64, reach: u64) -> u64 {
    let distance = random.within(0..=reach);
    if random.chance(60) {
        place.saturating_sub(distance)
    } else {
        place.saturating_add(distance.min(random.within(0..=reach))).min(MAX_EXACT)
    }
}

/// Returns a random number. The number is at a bound, near `middle`, or any exact integer.
fn number(random: &mut Random, middle: u64) -> u64 {
    let any = random.within(0..=MAX_EXACT);
    let below = random.within(0..=middle);
    let about = [middle.saturating_sub(1), middle, middle.saturating_add(1).min(MAX_EXACT)];
    let bounds = [0, 1, 999_999, 1_000_000, MAX_EXACT - 1, MAX_EXACT];
    match random.within(0..=9) {
        0 => any,
        1..=5 => below,
        6 | 7 => random.one_of(&about),
        _ => random.one_of(&bounds),
    }
}
