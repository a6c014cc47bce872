//! Subjects that are revealed by the names of keys.

use std::collections::BTreeSet;

use tollgate::model::{
    Charge, ChargeId, Cost, Limit, Operation, Store, StoreError, Subject, Value,
};
use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, LISTED_SUBJECTS, ListCursor, ListError, ListFilter};
use tollgate_policy::{LoadedPolicy, StoreSettings};

use crate::kit::{Cluster, Replicas, Server, Version};
use crate::redis::fleet::{PATIENT, key, loaded, open, shards};
use crate::redis::pairs::served;

/// The number of charged subjects.
const SUBJECTS: u64 = 300;

fn subject(name: &str) -> Subject {
    Subject::new([("token", Value::Clear(name.as_bytes()))], &key())
}

/// Creates a store in which the limit `core` reveals its subjects. Each subject is charged on
/// `core` and on `address`.
async fn charged(redis: &str) -> (LoadedPolicy, Backend) {
    let mut loaded = loaded(redis);
    let StoreSettings::Redis(redis) = &mut loaded.settings.store else { panic!("no Redis") };
    redis.revealed = vec!["core".into()];
    let store = open(&loaded);
    served(&store).await;
    let limits = loaded.policy.limits();
    for number in 0..SUBJECTS {
        let subject = subject(&format!("user-{number:03}"));
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(number.into()) };
        let charges =
            [0, 1].map(|at| Charge { limit: &limits[at].limit, subject: &subject, operation });
        assert!(store.apply(SystemClock.now(), &charges).await.unwrap().all_admitted());
    }
    (loaded, store)
}

/// Returns the subjects of all pages, and the number of pages.
async fn listed(store: &Backend, limit: &Limit, prefix: &str) -> (BTreeSet<Subject>, usize) {
    let (mut all, mut pages, mut at) = (BTreeSet::new(), 0, ListCursor::default());
    loop {
        let filter = ListFilter { limit, dimension: "token", prefix: prefix.as_bytes() };
        let page = store.subjects(filter, at).await.unwrap().unwrap();
        pages += 1;
        all.extend(page.subjects);
        let Some(next) = page.next else { return (all, pages) };
        at = next.to_string().parse().unwrap();
    }
}

async fn assert_listed(loaded: &LoadedPolicy, store: &Backend) {
    let [core, address, ..] = loaded.policy.limits() else { panic!("two limits") };
    let (all, pages) = listed(store, &core.limit, "").await;
    assert_eq!(all, (0..SUBJECTS).map(|number| subject(&format!("user-{number:03}"))).collect());
    assert!(pages as u64 <= 1 + SUBJECTS / LISTED_SUBJECTS as u64, "{pages}");
    assert!(pages > 1, "a page ends");
    let (few, _) = listed(store, &core.limit, "user-02").await;
    assert_eq!(few, (20..30).map(|number| subject(&format!("user-{number:03}"))).collect());
    assert!(listed(store, &core.limit, "user-02*").await.0.is_empty(), "it is no pattern");
    assert!(listed(store, &address.limit, "").await.0.is_empty(), "it reveals nobody");
}

#[tokio::test]
async fn every_subject_of_all_shards_is_found_by_what_its_name_begins_with() {
    let (one, two) = (Server::start().await, Server::start().await);
    let (loaded, store) = charged(&format!("{}, {PATIENT}", shards(&[&one, &two]))).await;
    assert_listed(&loaded, &store).await;
}

#[tokio::test]
async fn a_cluster_lists_what_each_of_its_primaries_knows() {
    let cluster = Cluster::start(Version::default(), Replicas::None).await;
    let nodes = cluster.nodes[0].url();
    let redis = format!("shards: {{ all: {{ nodes: [\"{nodes}\"] }} }}, {PATIENT}");
    let (loaded, store) = charged(&redis).await;
    assert_listed(&loaded, &store).await;
}

#[tokio::test]
async fn a_shard_that_does_not_answer_is_no_empty_one() {
    let mut server = Server::start().await;
    let (loaded, store) = charged(&format!("{}, {PATIENT}", shards(&[&server]))).await;
    server.kill();
    let limit = &loaded.policy.limits()[0].limit;
    let filter = ListFilter { limit, dimension: "token", prefix: b"" };
    let answer = store.subjects(filter, ListCursor::default()).await.unwrap();
    assert!(matches!(answer, Err(ListError::Store(StoreError::Unavailable))), "{answer:?}");
}
