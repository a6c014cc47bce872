//! Callers of several nodes with leases. The answers are checked as one history.

use std::num::NonZeroU64;
use std::sync::Arc;

use tollgate::model::algo::{Anchor, FixedWindow, SlidingWindow};
use tollgate::model::{
    Algorithm, Charge, Cost, Limit, Millis, Operation, Readings, Store, StoreError, Timestamp,
};
use tollgate::store::Memory;
use tollgate_conformance::history::{
    Allowance, LARGEST_COST, Recorded, Recorder, Refunds, Report, Rule, Workload,
};
use tollgate_stores::QuotaLease;
use tollgate_stores::quota_lease::{LeaseConfig, max_early_refusal};

use crate::quota_lease::{EAGER, leased};
use crate::quota_lease_nodes::rt;

const NODES: u64 = 4;
const CALLERS: u64 = 8;
const SEEDS: u64 = 8;
const QUOTA: u64 = 400;
const WINDOW: Millis = Millis::from_secs(2);

/// The configuration of leases, for four nodes and `DIE` nodes that die and are replaced. The
/// unused units of the dead nodes stay used for one window.
const TERMS: LeaseConfig = LeaseConfig { share: NonZeroU64::new(40).unwrap(), ..EAGER };
const DIE: usize = 2;

/// The store of all nodes. `alter` changes each operation before the store executes the operation.
struct Altering {
    memory: Memory,
    alter: Alter,
}

type Alter = for<'c> fn(Charge<'c>) -> Charge<'c>;

impl Store for Altering {
    async fn apply(&self, now: Timestamp, charges: &[Charge<'_>]) -> Result<Readings, StoreError> {
        let altered: Vec<_> = charges.iter().map(|charge| (self.alter)(*charge)).collect();
        self.memory.apply(now, &altered).await
    }
}

fn nothing(charge: Charge<'_>) -> Charge<'_> {
    charge
}

/// Doubles the cost of charges for leases.
fn leases_twice(charge: Charge<'_>) -> Charge<'_> {
    match charge.operation {
        Operation::Charge { cost, id } if cost.get() > LARGEST_COST => Charge {
            operation: Operation::Charge { cost: Cost::up_to(2 * cost.get()), id },
            ..charge
        },
        _ => charge,
    }
}

/// Changes charges for leases to charges of zero units.
fn no_leases(charge: Charge<'_>) -> Charge<'_> {
    match charge.operation {
        Operation::Charge { cost, id } if cost.get() > LARGEST_COST => {
            Charge { operation: Operation::Charge { cost: Cost::PEEK, id }, ..charge }
        }
        _ => charge,
    }
}

/// Runs callers of nodes over one altering store. Some of the nodes die during the run. Returns the
/// report on the history.
fn run_history(seed: u64, refunds: Refunds, alter: Alter) -> (Report, u64) {
    let workload = Arc::new(Workload::new(seed, limits(), refunds));
    let recorder = Arc::<Recorder>::default();
    let store = Arc::new(Altering { memory: Memory::default(), alter });
    let node = || {
        let leased = QuotaLease::new(Arc::clone(&store), TERMS);
        Arc::new(Recorded::with_recorder(leased, Arc::clone(&recorder)))
    };
    let mut nodes: Vec<_> = (0..NODES).map(|_| node()).collect();
    let mut decided = 0;
    for round in 0..2 {
        rt().block_on(async {
            let mut callers = tokio::task::JoinSet::new();
            for caller in 0..CALLERS {
                let store = Arc::clone(&nodes[(caller % NODES) as usize]);
                let workload = Arc::clone(&workload);
                callers.spawn(async move {
                    workload.call(&*store, round * CALLERS + caller).await;
                });
            }
            callers.join_all().await;
        });
        decided += nodes.iter().map(|node| node.store().counts().decided).sum::<u64>();
        nodes[..DIE].fill_with(node);
    }
    let each = limits().iter().map(|limit| TERMS.max_unused_units(limit)).max().unwrap();
    let leased = max_early_refusal(NODES + DIE as u64, each);
    (recorder.history().check(Allowance { leased, ..Allowance::default() }), decided)
}

fn limits() -> Vec<Limit> {
    let fixed = |anchor| FixedWindow::new(QUOTA, WINDOW, anchor).map(Algorithm::FixedWindow);
    let sliding = SlidingWindow::new(QUOTA, WINDOW, Millis::new(500)).map(Algorithm::SlidingWindow);
    [
        ("first", fixed(Anchor::FirstRequest)),
        ("calendar", fixed(Anchor::Calendar)),
        ("blocks", sliding),
    ]
    .map(|(name, algorithm)| leased(&Limit::new(name, algorithm.unwrap()).unwrap()))
    .into()
}

#[test]
fn nodes_that_lease_race_and_die_are_sound() {
    for seed in 0..SEEDS {
        for refunds in [Refunds::Never, Refunds::Often] {
            let (report, decided) = run_history(seed, refunds, nothing);
            println!("seed {seed}, {refunds:?}: {decided} by leases; {report}");
            report.assert_sound();
            assert!(decided > 0 && report.refused > 0 && report.windows > 0, "{report}");
        }
    }
}

#[test]
fn a_store_that_counts_leases_twice_or_not_at_all_is_found() {
    for seed in 0..SEEDS {
        for (report, rule) in [
            (run_history(seed, Refunds::Never, leases_twice).0, Rule::Lease),
            (run_history(seed, Refunds::Never, no_leases).0, Rule::Reading),
        ] {
            let is_found = report.violations.iter().any(|violation| violation.rule == rule);
            assert!(is_found, "seed {seed}: {rule:?} is silent\n{report}");
        }
    }
}
