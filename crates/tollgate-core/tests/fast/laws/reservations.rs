//! Reserved units count until they are settled or expire. After that, the state is the same as if
//! the units had never been reserved.

use proptest::prelude::*;
use tollgate_core::algo::TokenBucket;
use tollgate_core::decide::{assess_operation, expires_at, join};
use tollgate_core::{
    Admission, Algorithm, Cell, ChargeId, ChargePosition, Cost, Limit, MAX_RESERVATIONS, Millis,
    OnExpiry, Operation, Reading, Reservation, ReservationTerms, Timestamp, assess, decide,
};

use crate::laws::world::{
    START, config, fixed_window, sliding_log, sliding_window, token_bucket, two_bucket,
};

/// An operation of a test. The clock never steps back.
#[derive(Clone, Debug)]
enum Act {
    Take { after: u64, units: u64 },
    Reserve { after: u64, units: u64, millis: u64 },
    Settle { after: u64, of: usize, units: u64 },
    Extend { after: u64, of: usize, millis: u64 },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let after = || prop_oneof![3 => Just(0_u64), 2 => Just(1), 4 => 0..40_u64, 1 => 90..110_u64];
    let (units, millis) = (|| 1..7_u64, || 0..90_u64);
    let take = (after(), units()).prop_map(|(after, units)| Act::Take { after, units });
    let reserve = (after(), units(), millis()).prop_map(|(after, units, millis)| Act::Reserve {
        after,
        units,
        millis,
    });
    let settle = (after(), 0..4_usize, 0..12_u64).prop_map(|(after, of, units)| Act::Settle {
        after,
        of,
        units,
    });
    let extend = (after(), 0..4_usize, millis()).prop_map(|(after, of, millis)| Act::Extend {
        after,
        of,
        millis,
    });
    prop::collection::vec(prop_oneof![2 => take, 3 => reserve, 3 => settle, 1 => extend], 1..40)
}

fn takes() -> impl Strategy<Value = Vec<Act>> {
    let take = (0..40_u64, 1..4_u64).prop_map(|(after, units)| Act::Take { after, units });
    prop::collection::vec(take, 0..8)
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop_oneof![fixed_window(), sliding_window(), two_bucket(), sliding_log(), token_bucket()]
}

fn terms() -> impl Strategy<Value = ReservationTerms> {
    let on_expiry = prop_oneof![2 => Just(OnExpiry::Release), 1 => Just(OnExpiry::Charge)];
    (1..60_u64, 1..15_u64, on_expiry, 0..4_u64).prop_map(|(max, at_most, on_expiry, overdraft)| {
        ReservationTerms { max: Millis::new(max), at_most, on_expiry, overdraft }
    })
}

#[derive(Clone, Debug)]
struct Held {
    limit: Limit,
    cell: Option<Cell>,
    now: u64,
    /// The id, the position and the units of each reservation.
    reserved: Vec<(ChargeId, ChargePosition, u64)>,
    operations: u128,
}

impl Held {
    fn new(algorithm: Algorithm, terms: ReservationTerms) -> Self {
        let limit = Limit::new("law", algorithm).unwrap();
        let solvent = ReservationTerms { overdraft: 0, ..terms };
        let held = limit
            .clone()
            .with_reservation_terms(terms)
            .or_else(|_| limit.with_reservation_terms(solvent));
        Self { limit: held.unwrap(), cell: None, now: START, reserved: Vec::new(), operations: 0 }
    }

    fn at(&self, after: u64) -> Timestamp {
        Timestamp::from_millis(self.now + after)
    }

    fn apply(&mut self, operation: Operation) -> Reading {
        let (reading, cell) = decide(self.cell.take(), &self.limit, operation, self.at(0));
        self.cell = cell;
        reading
    }

    fn act(&mut self, act: &Act) -> Option<Reading> {
        self.operations += 1;
        let id = ChargeId(self.operations);
        match *act {
            Act::Take { after, units } => {
                self.now += after;
                Some(self.apply(Operation::Charge { cost: Cost::up_to(units), id }))
            }
            Act::Reserve { after, units, millis } => {
                self.now += after;
                let until = self.at(millis);
                let reading =
                    self.apply(Operation::Reserve { cost: Cost::up_to(units), id, until });
                if reading.admission == Admission::Now {
                    self.reserved.push((id, reading.position, units));
                }
                Some(reading)
            }
            Act::Settle { after, of, units } => {
                self.now += after;
                let (id, position, _) = *self.reserved.iter().rev().nth(of)?;
                Some(self.apply(Operation::Settle { id, position, cost: Cost::up_to(units) }))
            }
            Act::Extend { after, of, millis } => {
                self.now += after;
                let (id, position, _) = *self.reserved.iter().rev().nth(of)?;
                let until = self.at(millis);
                Some(self.apply(Operation::Extend { id, position, until }))
            }
        }
    }

    fn peek(&self, after: u64) -> Reading {
        assess(self.cell.as_ref(), &self.limit, Cost::PEEK, self.at(after))
    }
}

proptest! {
    #![proptest_config(config(800))]

    /// A settlement returns at most the reserved units, and charges at most the units beyond them.
    /// It stays within the capacity and the overdraft. A repeated settlement has no effect.
    #[test]
    fn a_settlement_is_bounded_and_happens_once(
        algorithm in algorithms(), terms in terms(), acts in acts(),
    ) {
        let mut world = Held::new(algorithm, terms);
        for act in &acts {
            let reading = world.act(act);
            let (Act::Settle { of, units, .. }, Some(reading)) = (act, reading) else { continue };
            let (_, _, held) = *world.reserved.iter().rev().nth(*of).unwrap();
            prop_assert!(reading.refunded <= held.saturating_sub(*units));
            prop_assert!(reading.added <= units.saturating_sub(held));
            let most = world.limit.capacity() + world.limit.reservation_terms().overdraft;
            prop_assert!(reading.added == 0 || reading.used <= most, "{:?}", reading);
            let (before, cell) = (world.peek(0), world.cell.clone());
            let again = world.act(&Act::Settle { after: 0, of: *of, units: 0 }).unwrap();
            prop_assert_eq!((again.admission, again.refunded, again.added), (Admission::Never, 0, 0));
            prop_assert_eq!((world.peek(0), &world.cell), (before, &cell));
        }
    }

    /// The expiry of a reservation has the same effect as a release at that time. It does not
    /// matter when the state is read.
    #[test]
    fn running_out_is_a_release_at_the_end(
        algorithm in algorithms(), before in takes(), units in 1..7_u64, millis in 1..90_u64,
        meanwhile in takes(), later in 0..200_u64,
    ) {
        let terms = ReservationTerms { max: Millis::new(1_000), ..ReservationTerms::default() };
        let mut released = Held::new(algorithm, terms);
        before.iter().for_each(|act| { released.act(act); });
        let mut over = released.clone();
        let (end, after) = (released.now + millis, 0);
        over.act(&Act::Reserve { after, units, millis });
        released.act(&Act::Reserve { after, units, millis: millis + 500 });
        for act in &meanwhile {
            let Act::Take { after, .. } = act else { continue };
            if over.now + after < end {
                over.act(act);
                released.act(act);
            }
        }
        released.now = end;
        released.act(&Act::Settle { after: 0, of: 0, units: 0 });
        for cost in [1, units, over.limit.capacity()].map(Cost::up_to) {
            let reading = |world: &Held| {
                let at = Timestamp::from_millis(end + later);
                assess(world.cell.as_ref(), &world.limit, cost, at)
            };
            let (by_itself, operations) = (reading(&over), reading(&released));
            prop_assert_eq!((by_itself.admission, by_itself.used), (operations.admission, operations.used));
            prop_assert_eq!((by_itself.reserved, operations.reserved), (0, 0));
        }
    }

    /// A refusal reports the first time at which the same request fits. That time takes the expiry
    /// of reservations into account.
    #[test]
    fn a_refused_ask_fits_when_it_was_told_and_not_before(
        algorithm in algorithms(), terms in terms(), acts in acts(), units in 1..7_u64,
    ) {
        let mut world = Held::new(algorithm, terms);
        acts.iter().for_each(|act| { world.act(act); });
        let until = world.at(50);
        let (cost, id) = (Cost::up_to(units), ChargeId(u128::MAX));
        for ask in [Operation::Charge { cost, id }, Operation::Reserve { cost, id, until }] {
            let admission = |at: u64| {
                assess_operation(world.cell.as_ref(), &world.limit, ask, Timestamp::from_millis(at)).admission
            };
            if let Admission::At(moment) = admission(world.now) {
                prop_assert_eq!(admission(moment.as_millis()), Admission::Now, "{:?}", ask);
                prop_assert_ne!(admission(moment.as_millis() - 1), Admission::Now, "{:?}", ask);
            }
        }
    }

    /// A reservation does not move the end of a window: the window ends at the same time as with
    /// charges.
    #[test]
    fn a_window_ends_when_it_would_have_without_reservations(
        algorithm in fixed_window(), terms in terms(), acts in acts(),
    ) {
        let mut world = Held::new(algorithm, terms);
        let mut ends = None;
        for act in &acts {
            let Some(reading) = world.act(act) else { continue };
            let counted = reading.used > 0 && reading.full_reset_at > world.at(0);
            if let Some(end) = ends.filter(|end| counted && *end > world.at(0)) {
                prop_assert_eq!(reading.full_reset_at, end);
            }
            ends = if counted { Some(reading.full_reset_at) } else { ends };
        }
    }

    /// The number of reserved units is bounded. A cell with reservations does not expire before
    /// them.
    #[test]
    fn what_is_held_is_bounded_and_kept(
        algorithm in algorithms(), terms in terms(), acts in acts(),
    ) {
        let mut world = Held::new(algorithm, terms);
        for act in &acts {
            world.act(act);
            let held = world.peek(0).reserved;
            prop_assert!(held <= world.limit.reservation_terms().at_most);
            if let Some(Cell::Reserved(cell)) = &world.cell {
                prop_assert!((1..=MAX_RESERVATIONS).contains(&cell.reservations.len()));
                let bytes = world.cell.as_ref().unwrap().to_bytes();
                prop_assert_eq!(&Cell::from_bytes(&bytes), &world.cell);
            }
            let over = world.cell.as_ref().map(|cell| expires_at(cell, &world.limit));
            prop_assert!(held == 0 || over.is_some_and(|over| over > world.at(0)));
        }
    }

    /// The join of two states with reservations uses at least as many units as each of them, in
    /// either order.
    #[test]
    fn accounts_that_part_are_no_less_than_either(
        algorithm in algorithms(), terms in terms(), before in acts(), one in acts(), other in acts(),
    ) {
        let mut common = Held::new(algorithm, terms);
        before.iter().for_each(|act| { common.act(act); });
        let (mut left, mut right) = (common.clone(), common);
        one.iter().for_each(|act| { left.act(act); });
        right.operations += 1_000;
        other.iter().for_each(|act| { right.act(act); });
        let (limit, now) = (left.limit.clone(), left.now.max(right.now));
        left.now = now;
        right.now = now;
        let both = |one: &Held, other: &Held| match other.cell.clone() {
            Some(other) => join(one.cell.clone(), other, &limit, Timestamp::from_millis(now)),
            None => one.cell.clone(),
        };
        let reading = |cell: Option<Cell>| {
            let reading = assess(cell.as_ref(), &limit, Cost::PEEK, Timestamp::from_millis(now));
            (reading.used, reading.reserved, reading.admission)
        };
        prop_assert_eq!(
            reservations(both(&right, &left), now), reservations(both(&left, &right), now), "in either order"
        );
        let joined = reading(both(&left, &right));
        prop_assert_eq!(reading(both(&right, &left)), joined, "in either order");
        prop_assert!(joined.0 >= left.peek(0).used.max(right.peek(0).used));
    }
}

/// Returns the reservations of `cell` that have not expired at `now`, sorted by id.
fn reservations(cell: Option<Cell>, now: u64) -> Vec<Reservation> {
    let Some(Cell::Reserved(reserved)) = cell else { return Vec::new() };
    let mut reservations = reserved.reservations;
    reservations.retain(|reservation| reservation.until.as_millis() > now);
    reservations.sort_by_key(|reservation| reservation.id.0);
    reservations
}

/// Before, the merged reservation had the position in the first of the two cells, and a settlement
/// returned the tokens that a bucket with more tokens had not refilled yet.
#[test]
fn a_merged_reservation_is_settled_as_in_the_bucket_that_is_kept() {
    let terms = ReservationTerms { max: Millis::new(1_000), ..ReservationTerms::default() };
    let bucket = Algorithm::TokenBucket(TokenBucket::new(4, Millis::new(400), 4).unwrap());
    let less = Held::new(bucket, terms);
    let mut more = less.clone();
    more.act(&Act::Take { after: 0, units: 1 });
    let [mut less, mut more] = [less, more].map(|mut world| {
        world.operations = 1_000;
        world.act(&Act::Reserve { after: 0, units: 2, millis: 900 });
        world.act(&Act::Take { after: 150, units: 0 });
        world
    });
    let (now, limit) = (more.at(0), more.limit.clone());
    let both =
        |one: &Held, other: &Held| join(one.cell.clone(), other.cell.clone().unwrap(), &limit, now);
    let joined = [both(&less, &more), both(&more, &less)];
    let settle = Act::Settle { after: 0, of: 0, units: 0 };
    more.act(&settle);
    for cell in joined {
        less.cell = cell;
        less.act(&settle);
        assert_eq!(less.peek(0), more.peek(0));
    }
}
