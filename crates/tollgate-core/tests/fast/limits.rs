//! The properties of limits, their ranges, and what a changed limit keeps.

use std::num::NonZeroU32;

use tollgate_core::algo::{
    Anchor, Concurrency, FixedWindow, Schedule, ScheduledWindow, SlidingLog, SlidingWindow,
    TokenBucket, TwoBucket, WindowSchedule,
};
use tollgate_core::limit::MAX_NAME;
use tollgate_core::refusal::RefusalSettings;
use tollgate_core::time::MAX_WINDOW;
use tollgate_core::{
    Algorithm, ChargeId, Cost, KeyedHash, Limit, LimitError, LimitMode, MAX_EXACT, Millis,
    OnChange, OnExpiry, Operation, Percent, Refusals, ReservationTerms, StatusSet, Subject,
    Timestamp, Value, decide,
};

const MINUTE: Millis = Millis::from_secs(60);

fn fixed(quota: u64) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::new(quota, MINUTE, Anchor::Calendar).unwrap())
}

fn sliding(quota: u64, precision: Millis) -> Algorithm {
    Algorithm::SlidingWindow(SlidingWindow::new(quota, MINUTE, precision).unwrap())
}

fn two_bucket(quota: u64) -> Algorithm {
    Algorithm::TwoBucket(TwoBucket::new(quota, MINUTE).unwrap())
}

fn log(quota: u64) -> Algorithm {
    Algorithm::SlidingLog(SlidingLog::new(quota, MINUTE).unwrap())
}

fn bucket(quota: u64, burst: u64) -> Algorithm {
    Algorithm::TokenBucket(TokenBucket::new(quota, MINUTE, burst).unwrap())
}

fn permits(quota: u64) -> Algorithm {
    Algorithm::Concurrency(Concurrency::new(quota, MINUTE).unwrap())
}

fn all(quota: u64) -> [Algorithm; 6] {
    let (sliding, bucket) = (sliding(quota, Millis::from_secs(1)), bucket(quota, quota));
    [fixed(quota), sliding, two_bucket(quota), log(quota), bucket, permits(quota)]
}

fn limit(algorithm: Algorithm) -> Limit {
    Limit::new("core", algorithm).unwrap()
}

/// Days of 24 h that begin at noon. They are reported as 23 h.
#[derive(Debug)]
struct Noons(&'static str);

const DAY: u64 = 86_400_000;

impl WindowSchedule for Noons {
    fn window_at(&self, now: Timestamp) -> ScheduledWindow {
        let start = (now.as_millis() - DAY / 2) / DAY * DAY + DAY / 2;
        let time = Timestamp::from_millis;
        ScheduledWindow { start: time(start), end: time(start + DAY) }
    }

    fn longest(&self) -> Millis {
        Millis::new(DAY + 1)
    }

    fn nominal(&self) -> Millis {
        Millis::from_secs(23 * 3_600)
    }

    fn name(&self) -> &str {
        self.0
    }
}

static NOONS: Noons = Noons("noon");
static OTHER_NOONS: Noons = Noons("noon");
static RENAMED: Noons = Noons("midday");

#[test]
fn a_scheduled_window_includes_its_start_and_not_its_end() {
    let time = Timestamp::from_millis;
    let window = ScheduledWindow { start: time(10), end: time(20) };
    let inside = [9, 10, 15, 19, 20, 21].map(|now| window.contains(time(now)));
    assert_eq!(inside, [false, true, true, true, false, false]);
    let empty = ScheduledWindow { start: time(10), end: time(10) };
    assert!(!empty.contains(time(10)));
}

#[test]
fn schedules_are_equal_if_their_windows_are() {
    let noons = Schedule::new(&NOONS);
    let ending = |end, longest| Schedule::ending(Timestamp::from_millis(end), Millis::new(longest));
    assert_eq!(noons, Schedule::new(&OTHER_NOONS));
    assert_ne!(noons, Schedule::new(&RENAMED));
    assert_eq!(ending(20, 5), ending(20, 5));
    for other in [noons, ending(20, 6), ending(21, 5)] {
        assert_ne!(ending(20, 5), other);
    }
    assert_eq!(format!("{noons:?}"), r#"Schedule("noon")"#);
    assert_eq!((noons.nominal(), ending(20, 5).nominal()), (NOONS.nominal(), Millis::new(5)));
}

#[test]
fn a_charge_at_the_opening_of_a_window_opens_that_window() {
    let scheduled = Anchor::Scheduled(Schedule::new(&NOONS));
    for anchor in [Anchor::FirstRequest, Anchor::Calendar, scheduled] {
        let window = FixedWindow::new(5, MINUTE, anchor).unwrap();
        let charge = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
        let limit = limit(Algorithm::FixedWindow(window));
        for now in [1_700_000_000_123, 1_700_000_040_000, 1_700_049_600_000] {
            let (reading, _) = decide(None, &limit, charge, Timestamp::from_millis(now));
            let opening = window.opening_of(reading.full_reset_at);
            assert!(opening <= Timestamp::from_millis(now));
            let (again, _) = decide(None, &limit, charge, opening);
            assert_eq!(again.full_reset_at, reading.full_reset_at, "{anchor:?}");
        }
    }
}

#[test]
fn a_fixed_window_admits_a_quota_for_each_window_that_can_begin() {
    let most = |window: FixedWindow, ran, skew| {
        window.max_admitted_units(Millis::from_secs(ran), Millis::from_secs(skew))
    };
    let minute = FixedWindow::new(5, MINUTE, Anchor::Calendar).unwrap();
    let all = [(0, 0), (60, 0), (60, 1), (59, 1), (120, 0)];
    assert_eq!(all.map(|(ran, skew)| most(minute, ran, skew)), [5, 10, 15, 10, 15]);
    let noons = FixedWindow::scheduled(5, Schedule::new(&NOONS)).unwrap();
    // No window is shorter than half of the longest.
    assert_eq!((most(noons, 43_200, 0), most(noons, 43_201, 0)), (10, 15));
    assert_eq!((noons.nominal_window(), minute.nominal_window()), (NOONS.nominal(), MINUTE));
}

#[test]
fn the_quota_per_window_is_that_of_the_policy() {
    for algorithm in [fixed(7), sliding(7, MINUTE), two_bucket(7), log(7), bucket(7, 9), permits(7)]
    {
        assert_eq!(limit(algorithm).quota_per_window(), (7, MINUTE), "{algorithm:?}");
    }
    let noons = FixedWindow::scheduled(7, Schedule::new(&NOONS)).unwrap();
    let noons = limit(Algorithm::FixedWindow(noons));
    assert_eq!(noons.quota_per_window(), (7, NOONS.nominal()));
    assert_eq!(noons.window(), NOONS.longest());
    let bursts = [bucket(7, 9), bucket(7, 7), bucket(9, 7), fixed(7), permits(7)];
    assert_eq!(bursts.map(|it| limit(it).burst()), [Some(9), None, Some(7), None, None]);
}

#[test]
fn only_lists_of_state_have_a_size() {
    let size = |algorithm: Algorithm| limit(algorithm).largest_state();
    let seconds = Millis::from_secs(1);
    for [none, one, many] in [
        [fixed(1), sliding(1, MINUTE), sliding(1, seconds)],
        [two_bucket(1), log(1), log(60)],
        [bucket(1, 1), permits(1), permits(60)],
    ] {
        // An element has at least a time or a number, and its units.
        assert!(size(none) == 0 && size(one) >= 16, "{one:?}");
        assert_eq!(size(many), 60 * size(one), "{many:?}");
    }
    // Each unit of an overdraft can be an entry of a log, up to the largest number of entries.
    for (overdraft, entries) in [(0, 5), (3, 8), (9_995, 10_000), (1 << 50, 10_000)] {
        let terms = ReservationTerms { overdraft, ..ReservationTerms::default() };
        let overdrawn = limit(log(5)).with_reservation_terms(terms).unwrap();
        assert_eq!(overdrawn.largest_state(), entries * size(log(1)), "{overdraft}");
    }
}

#[test]
fn a_lease_is_at_most_a_window_or_a_block_long() {
    let seconds = Millis::from_secs(1);
    let longest = all(5).map(|algorithm| limit(algorithm).longest_lease());
    assert_eq!(longest, [Some(MINUTE), Some(seconds), None, None, None, None]);
}

#[test]
fn a_concurrency_limit_and_counted_refusals_need_a_charge_on_arrival() {
    let on_arrival = all(5).map(|algorithm| limit(algorithm).is_charged_on_arrival());
    assert_eq!(on_arrival, [false, false, false, false, false, true]);
    for algorithm in &all(5)[..5] {
        let counted = limit(*algorithm).with_refusals(Refusals::Counted).unwrap();
        assert!(counted.is_charged_on_arrival());
        assert!(!counted.with_refusals(Refusals::Free).unwrap().is_charged_on_arrival());
    }
}

#[test]
fn a_limit_returns_its_settings() {
    let statuses = StatusSet::default().with(400, 499);
    let refusal = RefusalSettings { status: Some(503), ..RefusalSettings::default() };
    let plain = limit(fixed(5));
    assert_eq!((plain.counted(), plain.refusal(), plain.generation()), (None, None, None));
    let other = Limit::new("other", fixed(5)).unwrap();
    assert_ne!(plain.name_digest(), other.name_digest());
    assert_eq!((plain.name_digest(), plain.name()), (plain.state_digest(), "core"));
    let set = plain.with_counted(statuses).with_refusal(refusal.clone());
    assert_eq!(set.counted().map(|it| **it), Some(statuses));
    assert_eq!(set.refusal().map(|it| (**it).clone()), Some(refusal));
}

#[test]
fn what_an_algorithm_cannot_do_is_an_error() {
    let leased = limit(fixed(5)).with_mode(LimitMode::Leased).unwrap();
    assert_eq!(
        leased.clone().with_refusals(Refusals::Counted),
        Err(LimitError::LeasedCountsRefusals)
    );
    assert!(leased.with_refusals(Refusals::Free).is_ok());
    let permits = limit(permits(5));
    assert!(permits.clone().with_refusals(Refusals::Free).is_ok());
    assert_eq!(
        permits.clone().with_refusals(Refusals::Counted),
        Err(LimitError::RefusalsNotInFlight)
    );
    let terms = ReservationTerms::default();
    assert_eq!(permits.with_reservation_terms(terms), Err(LimitError::PermitsAreReservations));
    for algorithm in [two_bucket(5), bucket(5, 5)] {
        let limit = limit(algorithm);
        assert!(limit.clone().with_reservation_terms(terms).is_ok());
        let overdraft = ReservationTerms { overdraft: 1, ..terms };
        assert_eq!(limit.with_reservation_terms(overdraft), Err(LimitError::NoOverdraft));
    }
}

#[test]
fn reservation_terms_have_ranges() {
    let terms = ReservationTerms::default();
    let check = |terms| limit(fixed(5)).with_reservation_terms(terms).map(|_| ());
    assert_eq!(check(terms), Ok(()));
    let zero = |what| Err(LimitError::Zero(what));
    assert_eq!(check(ReservationTerms { max: Millis::ZERO, ..terms }), zero("longest reservation"));
    let what = "number of reserved units";
    assert_eq!(check(ReservationTerms { at_most: 0, ..terms }), zero(what));
    let largest = |result: Result<(), LimitError>| match result {
        Err(LimitError::TooLarge { what, given, largest, .. }) => (what, given, largest),
        other => panic!("{other:?}"),
    };
    let longest = MAX_WINDOW.get();
    let max = |max| ReservationTerms { max: Millis::new(max), ..terms };
    assert_eq!(check(max(longest)), Ok(()));
    let error = ("longest reservation", longest + 1, longest);
    assert_eq!(largest(check(max(longest + 1))), error);
    let at_most = |at_most| ReservationTerms { at_most, ..terms };
    assert_eq!(check(at_most(MAX_EXACT)), Ok(()));
    let error = (what, MAX_EXACT + 1, MAX_EXACT);
    assert_eq!(largest(check(at_most(MAX_EXACT + 1))), error);
    let overdraft = |overdraft| ReservationTerms { overdraft, ..terms };
    assert_eq!(check(overdraft(MAX_EXACT - 5)), Ok(()));
    let error = ("overdraft", MAX_EXACT - 4, MAX_EXACT - 5);
    assert_eq!(largest(check(overdraft(MAX_EXACT - 4))), error);
    let solvent = limit(fixed(5)).with_reservation_terms(overdraft(MAX_EXACT - 5)).unwrap();
    assert!(solvent.with_quota(5, None).is_ok());
    assert_eq!(largest(solvent.with_quota(6, None).map(|_| ())).2, MAX_EXACT - 6);
}

#[test]
fn names_have_1_to_64_plain_characters() {
    let (longest, too_long) = ("x".repeat(MAX_NAME), "x".repeat(MAX_NAME + 1));
    assert_eq!(MAX_NAME, 64);
    for name in ["x", "A-z_0.9", &longest] {
        let limit = Limit::new(name, fixed(5)).unwrap();
        assert_eq!(limit.with_resource(name).unwrap().resource(), name);
    }
    for name in ["", &*too_long, "a b", "a~", "é"] {
        let error = LimitError::Name(name.into());
        assert_eq!(Limit::new(name, fixed(5)), Err(error.clone()));
        assert_eq!(limit(fixed(5)).with_resource(name), Err(error));
    }
}

#[test]
fn quotas_and_windows_have_ranges() {
    let window =
        |quota, window| FixedWindow::new(quota, Millis::new(window), Anchor::Calendar).map(|_| ());
    assert_eq!((MAX_EXACT, MAX_WINDOW.get()), (9_007_199_254_740_991, 3_653 * DAY));
    for (quota, length) in [(1, 1), (MAX_EXACT, MAX_WINDOW.get())] {
        assert_eq!(window(quota, length), Ok(()));
    }
    assert_eq!(window(0, 1), Err(LimitError::Zero("quota")));
    assert_eq!(window(1, 0), Err(LimitError::Zero("window")));
    let is_too_large = |result: Result<(), LimitError>, name| matches!(result, Err(LimitError::TooLarge { what, .. }) if what == name);
    assert!(is_too_large(window(MAX_EXACT + 1, 1), "quota"));
    assert!(is_too_large(window(1, MAX_WINDOW.get() + 1), "window"));
}

#[test]
fn only_a_fixed_window_with_the_same_counters_keeps_longer_windows_of_the_limit_before() {
    let skew = limit(fixed(5)).skew_tolerance();
    let hour = FixedWindow::new(5, Millis::from_secs(3_600), Anchor::Calendar).unwrap();
    let hour = limit(Algorithm::FixedWindow(hour));
    let tolerance = |new: &Limit, old: &Limit| new.clone().replacing(old).skew_tolerance();
    let shortened = Millis::new(skew.get() + 59 * 60_000);
    assert_eq!(tolerance(&limit(fixed(5)), &hour), shortened);
    assert_eq!(tolerance(&hour, &limit(fixed(5))), skew);
    let renamed = Limit::new("other", *hour.algorithm()).unwrap();
    assert_eq!(tolerance(&limit(fixed(5)), &renamed), skew);
    let restarted = |algorithm| limit(algorithm).with_on_change(OnChange::Restart);
    assert_eq!(tolerance(&restarted(fixed(5)), &hour), skew);
    let log = |window| limit(Algorithm::SlidingLog(SlidingLog::new(5, window).unwrap()));
    let (short, long) = (log(MINUTE), log(Millis::from_secs(3_600)));
    assert_eq!(tolerance(&short, &long), skew);
}

#[test]
fn a_generation_depends_on_every_number_of_the_definition() {
    let generation =
        |algorithm| limit(algorithm).with_on_change(OnChange::Restart).generation().unwrap();
    let changed = [fixed(5), fixed(6), sliding(5, MINUTE), sliding(5, Millis::new(900)), log(5)];
    let mut all: Vec<_> =
        changed.into_iter().chain([bucket(5, 5), bucket(5, 6)]).map(generation).collect();
    for one in &all {
        assert_eq!(format!("{:08x}", one.get()), one.to_string());
    }
    all.sort_by_key(|one| one.get());
    all.dedup();
    assert_eq!(all.len(), 7);
    // Stores contain this number, so another number would restart all counters.
    assert_eq!(generation(fixed(5)).to_string(), "f16127ff");
}

#[test]
fn a_candidate_has_an_overdraft_that_fits_its_capacity() {
    let overdraft = |candidate: Algorithm, overdraft| {
        let terms = ReservationTerms { overdraft, ..ReservationTerms::default() };
        let limit = limit(fixed(5)).with_reservation_terms(terms).unwrap();
        let limit = limit.with_candidate(candidate);
        limit.candidate().unwrap().reservation_terms().overdraft
    };
    assert_eq!(overdraft(fixed(9), MAX_EXACT - 5), MAX_EXACT - 9);
    assert_eq!(overdraft(fixed(9), 7), 7);
    assert_eq!(overdraft(bucket(9, 9), 7), 0);
}

#[test]
fn a_limit_is_enforced_alone_without_a_candidate_and_for_all_subjects() {
    struct First;
    impl KeyedHash for First {
        fn hash(&self, bytes: &[u8]) -> [u8; 16] {
            [bytes.last().copied().unwrap_or(0); 16]
        }
    }
    let alone = limit(fixed(5));
    let half = alone.clone().with_enforced(Percent::new(50).unwrap());
    assert!(alone.is_enforced_alone() && !half.is_enforced_alone());
    assert!(!alone.clone().with_candidate(fixed(6)).is_enforced_alone());
    assert!(!half.clone().with_candidate(fixed(6)).is_enforced_alone());
    let none = alone.clone().with_enforced(Percent::NONE);
    let subject = |last: u8| Subject::new([("user", Value::Clear(&[last]))], &First);
    for (last, in_half) in [(0, true), (0x7f, true), (0x80, false), (0xff, false)] {
        let subject = subject(last);
        let enforces = [&alone, &half, &none].map(|limit| limit.enforces(&subject, &First));
        assert_eq!(enforces, [true, in_half, false], "{last}");
    }
}

#[test]
fn a_share_of_a_limit_has_a_share_of_its_overdraft_and_the_other_terms() {
    let terms =
        ReservationTerms { max: MINUTE, at_most: 9, on_expiry: OnExpiry::Charge, overdraft: 7 };
    let limit = limit(fixed(12)).with_reservation_terms(terms).unwrap();
    let share = limit.share(NonZeroU32::new(3).unwrap());
    assert_eq!(share.capacity(), 4);
    assert_eq!(*share.reservation_terms(), ReservationTerms { overdraft: 2, ..terms });
}

#[test]
fn the_limit_of_a_tenant_is_found_by_its_value() {
    for (algorithm, quota, burst) in
        [(fixed(5), 9, None), (bucket(5, 5), 9, Some(20)), (bucket(5, 5), 9, None)]
    {
        let base = limit(algorithm);
        let own = base.for_tenant(quota, burst).unwrap();
        let value = own.quota_value().unwrap();
        assert_eq!(base.of_tenant_value(value.as_bytes()).as_ref(), Some(&own));
        assert_eq!(own.state_digest(), base.state_digest());
    }
    let base = limit(fixed(5));
    for value in [&b""[..], b"pro", b"tenant:", b"tenant:x", b"tenant:9/", b"tenant:0", b"\xff"] {
        assert_eq!(base.of_tenant_value(value), None, "{value:?}");
    }
}

#[test]
fn a_cell_lasts_for_the_windows_that_count_its_charges() {
    let seconds = |algorithm| limit(algorithm).cell_lifetime().get() / 1_000;
    assert_eq!(all(5).map(seconds), [60, 60, 120, 60, 60, 60]);
    assert_eq!(seconds(sliding(5, Millis::from_secs(7))), 63);
    assert_eq!(seconds(bucket(5, 50)), 600);
}

#[test]
fn the_former_definition_of_a_scaled_limit_is_kept_for_one_window() {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let scaled = |quota| limit(fixed(quota)).with_on_change(OnChange::Scale);
    let old = scaled(5).with_candidate(fixed(6));
    let new = scaled(9).with_predecessor(&old, now);
    let kept = new.predecessor(now).unwrap();
    assert_eq!((kept.capacity(), kept.candidate()), (5, None));
    assert_eq!((new.replaced_at(), old.replaced_at()), (Some(now), None));
    let end = now.after(MINUTE).after(old.skew_tolerance());
    let before = Timestamp::from_millis(end.as_millis() - 1);
    assert!(new.predecessor(before).is_some() && new.predecessor(end).is_none());
    let unchanged = scaled(9).with_predecessor(&new, end);
    assert_eq!(unchanged.predecessor(now).map(Limit::capacity), Some(5));
    assert!(limit(fixed(9)).with_predecessor(&old, now).predecessor(now).is_none());
    let renamed = Limit::new("other", fixed(5)).unwrap().with_on_change(OnChange::Scale);
    assert!(scaled(9).with_predecessor(&renamed, now).predecessor(now).is_none());
    assert_eq!(new.for_tenant(20, None).unwrap().predecessor(now).unwrap().capacity(), 20);
}
