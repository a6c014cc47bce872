//! Test cases for reservations. A reservation is open until it is settled or expires, is settled
//! only once, and never returns more units than were reserved.

use tollgate_core::{
    Admission, ChargeId, Cost, Limit, Millis, OnExpiry, Operation, ReservationTerms, Store,
};

use super::scene::{Scene, apply, concurrency, every, fixed, moment, subject};

/// The longest reservation of these cases, in milliseconds.
const MAX: u64 = 400;

pub(super) async fn check<S: Store>(store: &S, prefix: &str) {
    settled_below(store, prefix).await;
    released(store, prefix).await;
    run_out(store, prefix).await;
    run_out_and_charged(store, prefix).await;
    extended(store, prefix).await;
    overdrawn(store, prefix).await;
    settled_in_a_later_window(store, prefix).await;
    bounded_in_amount(store, prefix).await;
    all_or_nothing(store, prefix).await;
    leases_are_reservations(store, prefix).await;
}

fn reserve(at: u64, units: u64, id: u128, millis: u64) -> Operation {
    Operation::Reserve { cost: Cost::up_to(units), id: ChargeId(id), until: moment(at + millis) }
}

impl<S: Store> Scene<'_, S> {
    fn holding(mut self, hold: ReservationTerms) -> Self {
        self.limit = self.limit.with_reservation_terms(hold).expect("terms that fit");
        self
    }

    async fn reserve(&self, at: u64, units: u64, id: u128) -> tollgate_core::Reading {
        self.apply(at, reserve(at, units, id, MAX)).await
    }

    async fn settle(&self, at: u64, id: u128, units: u64) -> tollgate_core::Reading {
        let (id, position, cost) =
            (ChargeId(id), tollgate_core::ChargePosition::default(), Cost::up_to(units));
        self.apply(at, Operation::Settle { id, position, cost }).await
    }

    async fn extend(&self, at: u64, id: u128, millis: u64) -> tollgate_core::Reading {
        let (id, position) = (ChargeId(id), tollgate_core::ChargePosition::default());
        self.apply(at, Operation::Extend { id, position, until: moment(at + millis) }).await
    }
}

/// Checks that the units that a settlement refunds are available at once, and that a second
/// settlement refunds nothing.
async fn settled_below<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(10, 1_000).into_iter().take(6) {
        let scene = Scene::new(store, prefix, &format!("settled-{name}"), algorithm);
        let reserved = scene.reserve(0, 8, 1).await;
        assert_eq!(
            (reserved.admission, reserved.used, reserved.reserved),
            (Admission::Now, 8, 8),
            "{name}"
        );
        assert_ne!(
            scene.charge(0, 3, 2).await.admission,
            Admission::Now,
            "{name}: it counts while it is held"
        );
        let settled = scene.settle(0, 1, 5).await;
        assert_eq!(
            (settled.admission, settled.refunded, settled.added),
            (Admission::Now, 3, 0),
            "{name}"
        );
        assert_eq!((settled.used, settled.reserved), (5, 0), "{name}");
        let again = scene.settle(0, 1, 0).await;
        assert_eq!(
            (again.admission, again.refunded, again.used),
            (Admission::Never, 0, 5),
            "{name}: again"
        );
        assert_eq!(
            scene.extend(0, 1, 10).await.admission,
            Admission::Never,
            "{name}: nothing to put off"
        );
        assert_eq!(scene.charge(0, 5, 3).await.admission, Admission::Now, "{name}");
    }
}

async fn released<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(10, 1_000).into_iter().take(6) {
        let scene = Scene::new(store, prefix, &format!("released-{name}"), algorithm);
        let resets_at = scene.charge(0, 2, 1).await.full_reset_at;
        scene.reserve(0, 8, 2).await;
        let released = scene.settle(0, 2, 0).await;
        assert_eq!((released.refunded, released.used, released.reserved), (8, 2, 0), "{name}");
        assert_eq!(released.full_reset_at, resets_at, "{name}: no window moved");
    }
}

/// Checks that the answer to a refused charge contains the time at which a reservation expires, and
/// that the charge is admitted at that time.
async fn run_out<S: Store>(store: &S, prefix: &str) {
    for (name, algorithm) in every(10, 1_000).into_iter().take(5) {
        let scene = Scene::new(store, prefix, &format!("run-out-{name}"), algorithm);
        scene.reserve(0, 10, 1).await;
        assert_eq!(scene.charge(10, 10, 2).await.admission, Admission::At(moment(MAX)), "{name}");
        assert_eq!(scene.peek(MAX - 1).await.reserved, 10, "{name}");
        let over = scene.peek(MAX).await;
        assert_eq!((over.used, over.reserved), (0, 0), "{name}: released by itself");
        assert_eq!(
            scene.settle(MAX, 1, 3).await.admission,
            Admission::Never,
            "{name}: nobody holds it"
        );
        assert_eq!(scene.charge(MAX, 10, 3).await.admission, Admission::Now, "{name}");
    }
}

async fn run_out_and_charged<S: Store>(store: &S, prefix: &str) {
    let terms = ReservationTerms { on_expiry: OnExpiry::Charge, ..ReservationTerms::default() };
    let scene = Scene::new(store, prefix, "charged", fixed(10, 1_000)).holding(terms);
    scene.reserve(0, 10, 1).await;
    assert_eq!(
        scene.charge(10, 1, 2).await.admission,
        Admission::At(moment(1_000)),
        "it stays used"
    );
    let over = scene.peek(MAX).await;
    assert_eq!((over.used, over.reserved), (10, 0));
}

async fn extended<S: Store>(store: &S, prefix: &str) {
    let terms = ReservationTerms { max: Millis::new(MAX), ..ReservationTerms::default() };
    let scene = Scene::new(store, prefix, "extended", fixed(10, 100_000)).holding(terms);
    scene.apply(0, reserve(0, 10, 1, 1_000_000)).await;
    assert_eq!(
        scene.charge(0, 1, 9).await.admission,
        Admission::At(moment(MAX)),
        "no longer than the limit lets"
    );
    assert_eq!(scene.extend(300, 1, MAX).await.admission, Admission::Now);
    assert_eq!(
        scene.extend(300, 1, 1).await.admission,
        Admission::Now,
        "repeated, and never nearer"
    );
    assert_eq!(scene.charge(300, 1, 9).await.admission, Admission::At(moment(300 + MAX)));
    assert_eq!(scene.extend(300 + MAX, 1, MAX).await.admission, Admission::Never, "it ran out");
    assert_eq!(scene.peek(300 + MAX).await.used, 0);
}

async fn overdrawn<S: Store>(store: &S, prefix: &str) {
    for (case, overdraft, added) in [("none", 0, 2), ("some", 5, 7), ("enough", 100, 12)] {
        let terms = ReservationTerms { overdraft, ..ReservationTerms::default() };
        let scene = Scene::new(store, prefix, &format!("overdrawn-{case}"), fixed(10, 1_000));
        let scene = scene.holding(terms);
        scene.reserve(0, 8, 1).await;
        let settled = scene.settle(10, 1, 20).await;
        assert_eq!((settled.admission, settled.added), (Admission::Now, added), "{case}");
        assert_eq!((settled.used, settled.reserved), (8 + added, 0), "{case}");
        assert_eq!(scene.charge(10, 1, 2).await.admission, Admission::At(moment(1_000)), "{case}");
    }
}

/// Checks that a settlement refunds nothing into a window that has ended, and charges units beyond
/// the reservation to the current window.
async fn settled_in_a_later_window<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "later", fixed(10, 100));
    scene.reserve(0, 6, 1).await;
    scene.reserve(0, 2, 2).await;
    scene.charge(150, 3, 3).await;
    let below = scene.settle(150, 1, 1).await;
    assert_eq!((below.admission, below.refunded, below.used), (Admission::Now, 0, 3));
    let above = scene.settle(150, 2, 4).await;
    assert_eq!((above.added, above.used, above.reserved), (2, 5, 0));
    assert_eq!(above.full_reset_at, moment(250), "the window that was open");
}

async fn bounded_in_amount<S: Store>(store: &S, prefix: &str) {
    let terms = ReservationTerms { at_most: 5, ..ReservationTerms::default() };
    let scene = Scene::new(store, prefix, "at-most", fixed(10, 100_000)).holding(terms);
    assert_eq!(
        scene.reserve(0, 6, 1).await.admission,
        Admission::Never,
        "more than may ever be held"
    );
    scene.reserve(0, 3, 2).await;
    assert_eq!(
        scene.reserve(10, 3, 3).await.admission,
        Admission::At(moment(MAX)),
        "beside what is held"
    );
    assert_eq!(scene.charge(10, 3, 4).await.admission, Admission::Now, "what is not held has room");
    scene.settle(10, 2, 3).await;
    assert_eq!(scene.reserve(10, 4, 5).await.admission, Admission::Now);
}

async fn all_or_nothing<S: Store>(store: &S, prefix: &str) {
    let subject = subject(prefix, "reserve-all-or-nothing");
    let wide = Limit::new("wide", fixed(10, 60_000)).expect("a name");
    let narrow = Limit::new("narrow", fixed(5, 60_000)).expect("a name");
    let charge_of =
        |limit, operation| tollgate_core::Charge { limit, subject: &subject, operation };
    let both =
        |units, id| [&wide, &narrow].map(|limit| charge_of(limit, reserve(0, units, id, MAX)));
    assert!(apply(store, 0, &both(4, 1)).await.all_admitted());
    let refused = apply(store, 0, &both(4, 2)).await;
    assert_eq!(
        (refused[0].admission, refused[0].used, refused[0].reserved),
        (Admission::Now, 4, 4)
    );
    assert_eq!((refused[1].used, refused[1].reserved), (4, 4), "nothing was held");
}

async fn leases_are_reservations<S: Store>(store: &S, prefix: &str) {
    let scene = Scene::new(store, prefix, "reserved-lease", concurrency(1, 1_000));
    assert_eq!(scene.reserve(0, 1, 1).await.admission, Admission::Now);
    assert_eq!(scene.extend(500, 1, MAX).await.admission, Admission::Now);
    assert_eq!(scene.reserve(600, 1, 2).await.admission, Admission::At(moment(1_500)), "renewed");
    let settled = scene.settle(600, 1, 7).await;
    assert_eq!((settled.admission, settled.refunded, settled.used), (Admission::Now, 1, 0));
    assert_eq!(scene.settle(600, 1, 7).await.admission, Admission::Never, "it is gone");
}
