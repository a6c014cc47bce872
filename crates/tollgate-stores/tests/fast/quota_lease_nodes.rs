//! Nodes with leases over one store. The tests check the units that the nodes admit together, and
//! their early refusals.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tollgate::model::algo::SlidingWindow;
use tollgate::model::decide::refundable_until;
use tollgate::model::{
    Admission, Algorithm, ChargePosition, Deduplication, Limit, Millis, Operation, Store,
    StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate_conformance::Random;
use tollgate_conformance::trace::seeds;
use tollgate_stores::QuotaLease;
use tollgate_stores::quota_lease::{LeaseConfig, max_early_refusal};

use crate::faulty::{Faulty, Trouble};
use crate::quota_lease::{EAGER, leased};
use crate::setup::{
    NOW, WINDOW, apply_one, at_once, calendar, charge, fixed, refund, take, until, user,
};

const SEEDS: u64 = 300;
const NODES: usize = 4;
const OPS: usize = 400;
const BLOCK: Millis = Millis::from_secs(7);

#[test]
fn nodes_never_admit_more_than_the_limit_and_refuse_early_by_no_more_than_they_say() {
    let mut most = HashMap::new();
    for seed in seeds(0, SEEDS) {
        let mut random = Random::new(seed);
        let quota = random.one_of(&[10, 60, 200, 1_000]);
        let sliding = SlidingWindow::new(quota, WINDOW, BLOCK).unwrap();
        let sliding = Limit::new("sliding", Algorithm::SlidingWindow(sliding)).unwrap();
        let limits = [calendar("core", quota), fixed("core", quota), sliding];
        let limit = leased(&limits[seed as usize % limits.len()]);
        let terms = match random.within(0..=2) {
            0 => LeaseConfig::for_nodes(NonZeroU32::new(NODES as u32).unwrap()),
            1 => LeaseConfig { share: NonZeroU64::new(4).unwrap(), ..EAGER },
            _ => LeaseConfig { share: NonZeroU64::new(8).unwrap(), ..EAGER },
        };
        let mut fleet = Fleet::new(&limit, LeaseConfig { hot_after: 1, ..terms });
        for op in 0..OPS {
            fleet
                .step(&mut random, op)
                .unwrap_or_else(|what| panic!("{what}, TOLLGATE_SEED={seed}"));
        }
        fleet.all_is_usable_when_nobody_asks();
        let (early, bound) = fleet.earliest;
        let entry: &mut (u64, u64) = most.entry(quota).or_default();
        if early * 4 >= bound && bound > 0 {
            *entry = (early.max(entry.0), bound.max(entry.1));
        }
    }
    let is_met = most.values().any(|(early, bound)| *early > 0 && early * 4 >= *bound);
    assert!(is_met || std::env::var("TOLLGATE_SEED").is_ok(), "the bound is never near: {most:?}");
}

/// Several nodes over one store, and the actual usage of each window.
struct Fleet<'l> {
    limit: &'l Limit,
    terms: LeaseConfig,
    store: Arc<Memory>,
    nodes: Vec<QuotaLease<Arc<Memory>>>,
    now: Timestamp,
    /// The units that were admitted and not refunded, by the position of their charge.
    used: HashMap<u64, u64>,
    admitted: Vec<(usize, u64, ChargePosition)>,
    /// The times at which nodes were killed.
    killed: Vec<Timestamp>,
    /// The most units that remained at a refusal, and the bound at that time.
    earliest: (u64, u64),
}

impl<'l> Fleet<'l> {
    fn new(limit: &'l Limit, terms: LeaseConfig) -> Self {
        let store = Arc::new(Memory::default());
        let nodes = (0..NODES).map(|_| QuotaLease::new(Arc::clone(&store), terms)).collect();
        let (used, admitted, killed) = Default::default();
        Self { limit, terms, store, nodes, now: NOW, used, admitted, killed, earliest: (0, 0) }
    }

    fn step(&mut self, random: &mut Random, op: usize) -> Result<(), String> {
        let node = random.within(0..=NODES as u64 - 1) as usize;
        match random.within(0..=99) {
            0..=79 => self.take(node, random.one_of(&[1, 1, 1, 1, 2, 5]), op as u128),
            80..=87 => self.give_back(random),
            88..=93 => {
                at_once(self.nodes[node].sweep(self.now));
                Ok(())
            }
            94 => {
                self.nodes[node] = QuotaLease::new(Arc::clone(&self.store), self.terms);
                self.killed.push(self.now);
                Ok(())
            }
            95..=98 => {
                self.now = self.now.after(Millis::new(random.within(1..=3_000)));
                Ok(())
            }
            _ => {
                self.now = self.now.after(Millis::new(random.within(1..=70_000)));
                Ok(())
            }
        }
    }

    fn take(&mut self, node: usize, cost: u64, id: u128) -> Result<(), String> {
        let taken =
            at_once(apply_one(&self.nodes[node], self.now, self.limit, &user(1), take(cost, id)));
        let taken = taken.map_err(|error| error.to_string())?;
        if taken.admission == Admission::Now {
            *self.used.entry(taken.position.0).or_default() += cost;
            self.admitted.push((node, cost, taken.position));
            let used = self.used_now();
            if used > self.limit.capacity() {
                return Err(format!("{used} of {} are used", self.limit.capacity()));
            }
            return Ok(());
        }
        let left = self.limit.capacity().saturating_sub(self.used_now());
        // The number of remaining units by which this refusal was too early.
        let early = (left + 1).saturating_sub(cost);
        let recently = |killed: &&Timestamp| killed.after(WINDOW).after(BLOCK) > self.now;
        let dead = self.killed.iter().filter(recently).count();
        let each = self.terms.max_unused_units(self.limit);
        let bound = max_early_refusal((NODES + dead) as u64, each);
        if early > bound {
            return Err(format!("refused {cost} with {left} left, early by at most {bound}"));
        }
        if early > self.earliest.0 {
            self.earliest = (early, bound);
        }
        Ok(())
    }

    fn give_back(&mut self, random: &mut Random) -> Result<(), String> {
        if self.admitted.is_empty() {
            return Ok(());
        }
        let index = random.within(0..=self.admitted.len() as u64 - 1) as usize;
        let (node, cost, position) = self.admitted.swap_remove(index);
        let back = refund(cost, index as u128, position);
        let back = at_once(apply_one(&self.nodes[node], self.now, self.limit, &user(1), back));
        let given = back.map_err(|error| error.to_string())?.refunded;
        let is_over = !self.positions().contains(&position);
        if given != if is_over { 0 } else { cost } {
            return Err(format!("{given} of {cost} given back, over: {is_over}"));
        }
        if let Some(used) = self.used.get_mut(&position.0).filter(|_| !is_over) {
            *used -= given;
        }
        Ok(())
    }

    /// Returns the positions of charges that count now.
    fn positions(&self) -> Vec<ChargePosition> {
        let counts = |position: &ChargePosition| refundable_until(self.limit, *position) > self.now;
        self.used.keys().map(|position| ChargePosition(*position)).filter(counts).collect()
    }

    fn used_now(&self) -> u64 {
        self.positions().iter().map(|position| self.used[&position.0]).sum()
    }

    /// Asserts that all units are usable when no requests arrive: unused leases are refunded, and
    /// the leases of a killed node end with their window.
    fn all_is_usable_when_nobody_asks(&mut self) {
        for _ in 0..2 {
            self.nodes.iter().for_each(|node| at_once(node.sweep(self.now)));
        }
        let peek = |fleet: &Self| {
            at_once(apply_one(&fleet.store, fleet.now, fleet.limit, &user(1), take(0, 0)))
                .unwrap()
                .used
        };
        let recently = |killed: &Timestamp| killed.after(WINDOW).after(BLOCK) > self.now;
        if !self.killed.iter().any(recently) {
            assert_eq!(peek(self), self.used_now());
        }
        self.now = self.now.after(WINDOW).after(WINDOW);
        assert_eq!(peek(self), 0);
        for node in &self.nodes {
            let counts = node.counts();
            assert!(counts.units_returned <= counts.units_taken + OPS as u64 * 5);
        }
    }
}

pub(crate) fn rt() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
}

/// Threads on several nodes admit exactly the quota, in any order of their calls.
#[test]
fn nodes_that_race_admit_the_quota_and_not_one_more() {
    const QUOTA: u64 = 20_000;
    let limit = Arc::new(leased(&fixed("core", QUOTA)));
    let store = Arc::new(Memory::default());
    let terms = LeaseConfig::for_nodes(NonZeroU32::new(NODES as u32).unwrap());
    let admitted = rt().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for node in 0..NODES {
            let node_store = Arc::new(QuotaLease::new(Arc::clone(&store), terms));
            for caller in 0..4 {
                let (node_store, limit) = (Arc::clone(&node_store), Arc::clone(&limit));
                tasks.spawn(async move {
                    let mut admitted = 0;
                    for id in 0..QUOTA / 8 {
                        let id = u128::from(id) << 16 | (node * 4 + caller) as u128;
                        let taken =
                            apply_one(&*node_store, NOW, &limit, &user(1), take(1, id)).await;
                        admitted += u64::from(taken.unwrap().admission == Admission::Now);
                    }
                    node_store.refund_all(NOW).await;
                    admitted
                });
            }
        }
        tasks.join_all().await.into_iter().sum::<u64>()
    });
    let used = at_once(apply_one(&store, NOW, &limit, &user(1), take(0, 0))).unwrap().used;
    assert_eq!(used, admitted, "all that is unused went back");
    assert!(admitted <= QUOTA);
    // A request that was refused because of another node's lease may have left some units unused.
    assert!(QUOTA - admitted <= max_early_refusal(NODES as u64, terms.max_unused_units(&limit)));
}

/// Callers with a lease that is used up wait for the one caller that takes the next lease.
#[test]
fn one_caller_takes_and_the_others_wait_for_it() {
    rt().block_on(async {
        let gate = Arc::new(Semaphore::new(0));
        let store = Arc::new(Faulty::new());
        let node =
            Arc::new(QuotaLease::new(Arc::clone(&store), LeaseConfig { hot_after: 1, ..EAGER }));
        let limit = Arc::new(leased(&fixed("core", 1_000_000)));
        apply_one(&*node, NOW, &limit, &user(1), take(100, 0)).await.unwrap();
        store.usually(Trouble::Held(Arc::clone(&gate)));
        let mut tasks = tokio::task::JoinSet::new();
        for id in 1..=100 {
            let (node, limit) = (Arc::clone(&node), Arc::clone(&limit));
            tasks.spawn(async move { apply_one(&*node, NOW, &limit, &user(1), take(1, id)).await });
        }
        until(|| store.calls() == 2).await;
        gate.add_permits(1);
        let taken = tasks.join_all().await;
        assert!(
            taken
                .iter()
                .all(|taken| taken.is_ok_and(|reading| reading.admission == Admission::Now))
        );
        let mut used: Vec<_> = taken.into_iter().map(|taken| taken.unwrap().used).collect();
        used.sort_unstable();
        assert_eq!(used, (101..=200).collect::<Vec<_>>(), "each its own unit");
        assert_eq!((store.calls(), node.counts().taken), (2, 1));
    });
}

/// The zero-cost charge fitted when it was sent. Before another limit refused the call, all units
/// were used. The refusal does not make the charge fit again.
#[test]
fn what_costs_nothing_does_not_fit_where_all_is_used_because_another_limit_refused() {
    rt().block_on(async {
        let gate = Arc::new(Semaphore::new(0));
        let store = Arc::new(Faulty::new());
        let node = QuotaLease::new(Arc::clone(&store), EAGER);
        let (limit, full, subject) = (leased(&fixed("core", 10)), fixed("full", 1), user(1));
        for id in 0..3 {
            apply_one(&node, NOW, &limit, &subject, take(1, id)).await.unwrap();
        }
        apply_one(&node, NOW, &full, &subject, take(1, 3)).await.unwrap();
        store.next([Trouble::Held(Arc::clone(&gate))]);
        let both = [charge(&limit, &subject, take(0, 4)), charge(&full, &subject, take(1, 4))];
        let both = node.apply(NOW, &both);
        let others = async {
            for id in 5..12 {
                let taken = apply_one(&node, NOW, &limit, &subject, take(1, id)).await.unwrap();
                assert_eq!(taken.admission, Admission::Now);
            }
            gate.add_permits(1);
        };
        let (refused, ()) = tokio::join!(both, others);
        let refused = refused.unwrap();
        assert_eq!((refused[0].admission, refused[0].used), (Admission::Now, 3), "as it stood");
        assert_eq!(refused[1].admission, Admission::At(NOW.after(WINDOW)));
    });
}

/// Answers arrive in any order. An answer from before a lease was taken does not show how much of
/// the lease is used.
#[test]
fn an_answer_that_comes_after_a_later_one_stops_reading_from_what_is_used() {
    rt().block_on(async {
        let gate = Arc::new(Semaphore::new(0));
        let store = Arc::new(Faulty::new());
        let node = QuotaLease::new(Arc::clone(&store), EAGER);
        let (limit, subject) = (leased(&fixed("core", 1_000)), user(1));
        let first = apply_one(&node, NOW, &limit, &subject, take(3, 0)).await.unwrap();
        store.next([Trouble::Late(Arc::clone(&gate))]);
        let Operation::Refund { cost, position, id, .. } = refund(1, 0, first.position) else {
            unreachable!()
        };
        let guarded = Operation::Refund { cost, position, id, deduplication: Deduplication::ById };
        let refunded = apply_one(&node, NOW, &limit, &subject, guarded);
        let meanwhile = async {
            let taken = apply_one(&node, NOW, &limit, &subject, take(1, 1)).await.unwrap();
            assert_eq!((taken.used, node.counts().taken), (3, 1), "out of a lease");
            gate.add_permits(1);
        };
        let (refunded, ()) = tokio::join!(refunded, meanwhile);
        assert_eq!(refunded.map(|reading| reading.refunded), Ok(1));
        for (id, used) in [(2, 4), (3, 5)] {
            let taken = apply_one(&node, NOW, &limit, &subject, take(1, id)).await.unwrap();
            assert_eq!(taken.used, used);
        }
    });
}

/// If a late answer leaves only a lower bound of the usage, the bound includes the charges before
/// the first lease.
#[test]
fn a_late_answer_does_not_hide_the_charges_before_the_first_lease() {
    rt().block_on(async {
        let gate = Arc::new(Semaphore::new(0));
        let store = Arc::new(Faulty::new());
        let node = QuotaLease::new(Arc::clone(&store), LeaseConfig::for_nodes(NonZeroU32::MIN));
        let (limit, subject) = (leased(&fixed("core", 1_000)), user(1));
        let mut position = None;
        for id in 0..4 {
            let taken = apply_one(&node, NOW, &limit, &subject, take(1, id)).await.unwrap();
            position = Some(taken.position);
        }
        store.next([Trouble::Late(Arc::clone(&gate))]);
        let Operation::Refund { cost, position, id, .. } = refund(1, 0, position.unwrap()) else {
            unreachable!()
        };
        let guarded = Operation::Refund { cost, position, id, deduplication: Deduplication::ById };
        let refunded = apply_one(&node, NOW, &limit, &subject, guarded);
        let meanwhile = async {
            let taken = apply_one(&node, NOW, &limit, &subject, take(1, 4)).await.unwrap();
            assert_eq!((taken.used, node.counts().taken), (4, 1), "out of a lease");
            gate.add_permits(1);
        };
        let (refunded, ()) = tokio::join!(refunded, meanwhile);
        assert_eq!(refunded.map(|reading| reading.refunded), Ok(1));
        let taken = apply_one(&node, NOW, &limit, &subject, take(1, 5)).await.unwrap();
        assert_eq!(taken.used, 5);
    });
}

/// If the answer to a lease does not arrive, the store may still have counted the lease.
#[test]
fn a_lease_without_an_answer_counts_as_lost() {
    rt().block_on(async {
        let store = Arc::new(Faulty::new());
        let node = QuotaLease::new(Arc::clone(&store), EAGER);
        let (limit, subject) = (leased(&fixed("core", 1_000)), user(1));
        apply_one(&node, NOW, &limit, &subject, take(1, 0)).await.unwrap();
        store.next([Trouble::Lost(StoreError::TimedOut)]);
        let taken = apply_one(&node, NOW, &limit, &subject, take(1, 1)).await;
        assert_eq!(taken.err(), Some(StoreError::TimedOut));
        assert_eq!(node.counts().units_lost, 8, "eight times the charge");
        store.next([Trouble::Lost(StoreError::Unavailable)]);
        let taken = apply_one(&node, NOW, &limit, &subject, take(1, 2)).await;
        assert_eq!(taken.err(), Some(StoreError::Unavailable));
        assert_eq!(node.counts().units_lost, 8, "an unreachable store counted nothing");
    });
}

/// If the store does not answer, it is called once, and all waiting callers get the error.
#[test]
fn a_failure_is_heard_by_all_who_wait() {
    rt().block_on(async {
        let store = Arc::new(Faulty::new());
        let node = Arc::new(QuotaLease::new(Arc::clone(&store), EAGER));
        let limit = Arc::new(leased(&fixed("core", 1_000_000)));
        apply_one(&*node, NOW, &limit, &user(1), take(1, 0)).await.unwrap();
        store.usually(Trouble::Lost(StoreError::TimedOut));
        for id in 1..=10 {
            let taken = apply_one(&*node, NOW, &limit, &user(1), take(1, id)).await;
            assert_eq!(taken.err(), Some(StoreError::TimedOut));
        }
        assert_eq!(store.calls(), 11, "each asked once and was told");
        store.usually(Trouble::None);
        assert!(apply_one(&*node, NOW, &limit, &user(1), take(1, 11)).await.is_ok());
    });
}

/// If a caller is cancelled before the answer to its lease, the lease stays available for the next
/// caller.
#[test]
fn a_lease_that_comes_late_is_there_for_the_next() {
    rt().block_on(async {
        let gate = Arc::new(Semaphore::new(0));
        let store = Arc::new(Faulty::new());
        let node = QuotaLease::new(Arc::clone(&store), EAGER);
        let limit = leased(&fixed("core", 1_000_000));
        apply_one(&node, NOW, &limit, &user(1), take(1, 0)).await.unwrap();
        store.usually(Trouble::Held(Arc::clone(&gate)));
        let subject = user(1);
        let mut gone = Box::pin(apply_one(&node, NOW, &limit, &subject, take(1, 1)));
        let poll = std::future::poll_fn(|context| {
            std::task::Poll::Ready(gone.as_mut().poll(context).is_pending())
        });
        assert!(poll.await);
        drop(gone);
        until(|| store.calls() == 2).await;
        gate.add_permits(1);
        until(|| node.counts().taken == 1).await;
        let taken = apply_one(&node, NOW, &limit, &user(1), take(1, 2)).await.unwrap();
        assert_eq!((taken.used, store.calls()), (2, 2));
    });
}

/// After a reset through one node, another node uses at most the rest of its own lease.
#[test]
fn what_another_node_had_of_a_forgotten_window_is_bounded() {
    let store = Arc::new(Memory::default());
    let nodes = [(); 2].map(|()| QuotaLease::new(Arc::clone(&store), EAGER));
    let limit = leased(&calendar("core", 100));
    for (node, id) in [0, 0, 1, 1].into_iter().zip(0..) {
        at_once(apply_one(&nodes[node], NOW, &limit, &user(1), take(1, id))).unwrap();
    }
    at_once(apply_one(&nodes[0], NOW, &limit, &user(1), Operation::Reset)).unwrap();
    let mut admitted = 0;
    for id in 10..400 {
        let node = &nodes[id as usize % 2];
        let taken = at_once(apply_one(node, NOW, &limit, &user(1), take(1, id))).unwrap();
        admitted += u64::from(taken.admission == Admission::Now);
    }
    let bound = limit.capacity() + nodes[1].max_unused_units(&limit);
    assert!(admitted > limit.capacity() && admitted <= bound, "{admitted}");
}
