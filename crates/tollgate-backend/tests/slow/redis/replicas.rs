//! The choice of the servers that answer status queries, in the complete store.

use tollgate::model::key::Subject;
use tollgate::model::{Charge, ChargeId, Cost, DecisionSource, Operation, Store, Value};
use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, Counts};
use tollgate_policy::LoadedPolicy;

use crate::kit::Version;
use crate::redis::fleet::{PATIENT, key, loaded, open};
use crate::redis::pairs::{is_read_from, pairs, served, words};

/// The number of clients, and of pairs of a token and an address.
const CLIENTS: u8 = 32;

/// Returns charges of both limits of `loaded`, for two subjects that may be on two shards.
fn charges<'a>(
    loaded: &'a LoadedPolicy,
    subjects: &'a [Subject; 2],
    operation: Operation,
) -> [Charge<'a>; 2] {
    [0, 1].map(|place| {
        let limit = &loaded.policy.limits()[place].limit;
        Charge { limit, subject: &subjects[place], operation }
    })
}

fn subjects(number: u8) -> [Subject; 2] {
    ["token", "address"].map(|name| Subject::new([(name, Value::Clear(&[number]))], &key()))
}

/// Returns the numbers of jobs sent to primaries and to replicas.
fn jobs(store: &Backend) -> [u64; 2] {
    let status = store.status();
    let carried =
        |batcher: usize| status.iter().map(|shard| shard.batchers[batcher].counts.jobs).sum();
    [carried(0), carried(1)]
}

#[tokio::test]
async fn looks_over_several_shards_are_answered_by_their_replicas() {
    let pairs = pairs(Version::default(), 2).await;
    let loaded = loaded(&format!("{}, {PATIENT}, deny_cache: false", words(&pairs)));
    let store = open(&loaded);
    served(&store).await;
    is_read_from(&store, &pairs).await;
    let now = SystemClock.now();
    for number in 0..CLIENTS {
        let cost = Cost::new(u64::from(number % 10) + 1).unwrap();
        let operation = Operation::Charge { cost, id: ChargeId(number.into()) };
        let readings =
            store.apply(now, &charges(&loaded, &subjects(number), operation)).await.unwrap();
        assert!(readings.all_admitted());
    }
    for [primary, _] in &pairs {
        primary.is_followed().await;
    }
    let before = jobs(&store);
    for number in 0..CLIENTS {
        let used = u64::from(number % 10) + 1;
        for cost in [1, 10] {
            let operation = Operation::Peek { cost: Cost::new(cost).unwrap() };
            let readings =
                store.apply(now, &charges(&loaded, &subjects(number), operation)).await.unwrap();
            assert_eq!(readings.source(), DecisionSource::Store);
            assert!(readings.iter().all(|reading| reading.used == used), "{number}: {readings:?}");
            assert_eq!(readings.all_admitted(), used + cost <= 10, "{number}: {readings:?}");
        }
    }
    let after = jobs(&store);
    assert_eq!(after[0], before[0], "a primary was asked");
    let both = 4 * u64::from(CLIENTS);
    let reads = after[1] - before[1];
    // A pair of subjects on one shard needs one job, and a pair on two shards needs two jobs.
    assert!(reads > both / 2 && reads <= both, "{reads}");
    let Backend::Redis(fleet) = &store else { panic!("{store:?}") };
    assert_eq!(fleet.counts(), Counts::default());
}
