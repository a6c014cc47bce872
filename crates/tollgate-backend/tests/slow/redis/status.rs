//! The status of shards, and the clock by which the shards decide.

use tollgate::model::key::Subject;
use tollgate::model::{Charge, ChargeId, Cost, Millis, Operation, Store, Timestamp, Value};
use tollgate::{Clock, ManualClock, SystemClock};
use tollgate_backend::{Backend, Counts};
use tollgate_redis::{CircuitState, StepRuntime};

use crate::kit::{QUICK, Server};
use crate::redis::fleet::{PATIENT, key, loaded, open, shards};
use crate::redis::pairs::served;

#[tokio::test]
async fn each_shard_reports_its_servers_its_step_and_its_clock() {
    let primary = Server::start_with(&QUICK).await;
    let replica = Server::start_with(&QUICK).await;
    replica.follow(&primary).await;
    let store = open(&loaded(&format!(
        "shards: {{ north: {{ primary: \"{}\", replicas: \"{}\" }} }}, {PATIENT}",
        primary.url(),
        replica.url()
    )));
    let status = served(&store).await;
    assert_eq!(status.len(), 1);
    let shard = &status[0];
    assert_eq!((&*shard.name, shard.runs), ("north", StepRuntime::Function));
    assert_eq!(shard.primary(), Some(&*primary.url()));
    assert_eq!(shard.batchers.len(), 2, "the primary's, and that of the replica that is read from");
    let offset = shard.clock_offset.unwrap();
    assert!(offset.millis.unsigned_abs() <= offset.uncertainty, "one machine: {offset:?}");
    assert!(shard.skew().is_zero());
}

#[tokio::test]
async fn state_that_counts_as_none_is_counted() {
    let server = Server::start().await;
    let loaded = loaded(&format!("{}, {PATIENT}", shards(&[&server])));
    let store = open(&loaded);
    served(&store).await;
    let Backend::Redis(fleet) = &store else { panic!("{store:?}") };
    let subject = Subject::new([("token", Value::Clear(b"foreign"))], &key());
    let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(1) };
    let charge = Charge { limit: &loaded.policy.limits()[0].limit, subject: &subject, operation };
    for (discarded, junk) in [(1, "junk"), (2, "9007199254740993000001")] {
        store.apply(SystemClock.now(), &[charge]).await.unwrap();
        let name = String::from_utf8(server.keys().await.remove(0)).unwrap();
        server.execute(&["SET", &name, junk]).await;
        for _ in 0..3 {
            assert!(store.apply(SystemClock.now(), &[charge]).await.unwrap().all_admitted());
        }
        // The first charge started a new window, and the other charges found the state of this
        // window.
        assert_eq!(fleet.counts(), Counts { discarded, ..Counts::default() });
    }
}

#[tokio::test]
async fn a_shard_that_is_not_there_says_why() {
    let mut server = Server::start().await;
    server.kill();
    let url = server.url();
    let store = open(&loaded(&format!("shards: {{ north: {{ primary: \"{url}\" }} }}")));
    let status = store.started().await;
    assert_eq!((status[0].primary(), status[0].clock_offset), (None, None));
    assert_eq!(status[0].batchers[0].circuit_state, CircuitState::Open);
    let reason = status[0].batchers[0].last_error.as_ref().unwrap().to_string();
    assert!(reason.contains(&url), "{reason}");
}

#[tokio::test]
async fn the_shards_clock_sets_the_limiters_where_the_file_says_so() {
    let server = Server::start().await;
    let shards = format!("shards: {{ north: {{ primary: \"{}\" }} }}, {PATIENT}", server.url());
    let wrong = Timestamp::from_millis(1_000_000);

    let store = open(&loaded(&format!("{shards}, clock: store")));
    served(&store).await;
    let clock = store.clock(ManualClock::new(wrong));
    let before = SystemClock.now();
    let time = clock.now();
    let status = store.status();
    let uncertain = Millis::new(status[0].clock_offset.unwrap().uncertainty + 1);
    assert!(time.after(uncertain) >= before, "{time:?} is before {before:?}");
    assert!(SystemClock.now().after(uncertain) >= time, "{time:?} is to come");
}
