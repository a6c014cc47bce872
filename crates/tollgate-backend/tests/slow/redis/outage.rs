//! Decisions while shards do not answer.

use tollgate::model::key::Subject;
use tollgate::model::{
    Charge, ChargeId, Cost, DecisionSource, Operation, Store, StoreError, Value,
};
use tollgate::{Clock, SystemClock};
use tollgate_backend::{Backend, Counts};
use tollgate_redis::CircuitState;

use crate::kit::Server;
use crate::redis::fleet::{key, loaded, open, shards};
use crate::redis::pairs::served;

/// The most consecutive decisions that miss their deadline before the circuit breaker opens.
const MISSES: usize = 5;

#[tokio::test]
async fn a_frozen_shard_is_waited_for_a_few_times_and_then_not() {
    let server = Server::start().await;
    let loaded = loaded(&format!("{}, nodes: 2, deadline: 300ms", shards(&[&server])));
    let store = open(&loaded);
    served(&store).await;
    server.freeze();
    let limit = &loaded.policy.limits()[0].limit;
    let subject = Subject::new([("token", Value::Clear(b"frozen"))], &key());
    let mut admitted = 0;
    for id in 0..20 {
        let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(id) };
        let charge = Charge { limit, subject: &subject, operation };
        let readings = store.apply(SystemClock.now(), &[charge]).await.unwrap();
        assert!(
            matches!(readings.source(), DecisionSource::Fallback(_)),
            "{:?}",
            readings.source()
        );
        admitted += usize::from(readings.all_admitted());
    }
    assert_eq!(admitted, 5, "this node's half of ten");
    let Backend::Redis(fleet) = &store else { panic!("{store:?}") };
    assert_eq!(fleet.counts().fallback_decisions, 20);
    let batcher = &store.status()[0].batchers[0];
    assert_eq!(batcher.circuit_state, CircuitState::Open);
    let deadline_misses =
        usize::try_from(batcher.counts.timed_out + fleet.counts().deadline_misses).unwrap();
    assert!(deadline_misses <= MISSES, "{deadline_misses} decisions waited");
    server.thaw();
}

#[tokio::test]
async fn a_charge_over_a_shard_that_is_gone_is_charged_once_at_the_other() {
    let (here, mut gone) = (Server::start().await, Server::start().await);
    let loaded = loaded(&format!("{}, deadline: 10s", shards(&[&here, &gone])));
    let store = open(&loaded);
    served(&store).await;
    gone.kill();
    let limits: Vec<_> = loaded.policy.limits().iter().map(|limit| &limit.limit).collect();
    // Some of these pairs of subjects belong to two different shards.
    for number in 0..32_u8 {
        let subjects = ["token", "address"]
            .map(|name| Subject::new([(name, Value::Clear(&[number]))], &key()));
        let take = |place: usize| {
            let operation = Operation::Charge { cost: Cost::ONE, id: ChargeId(number.into()) };
            Charge { limit: limits[place], subject: &subjects[place], operation }
        };
        let before = here.keys().await.len();
        let readings = store.apply(SystemClock.now(), &[take(0), take(1)]).await.unwrap();
        assert!(readings.all_admitted());
        let unavailable = DecisionSource::Fallback(StoreError::Unavailable);
        let timed_out = DecisionSource::Fallback(StoreError::TimedOut);
        match readings.source() {
            DecisionSource::Store => assert_eq!(here.keys().await.len(), before + 2),
            source => {
                assert!(source == unavailable || source == timed_out, "{source:?}");
                let look = |place: usize| {
                    let operation = Operation::Charge { cost: Cost::PEEK, id: ChargeId(0) };
                    Charge { operation, ..take(place) }
                };
                for place in [0, 1] {
                    let looked = store.apply(SystemClock.now(), &[look(place)]).await.unwrap();
                    if looked.source() == DecisionSource::Store {
                        // The charge was refunded. The node's fallback admitted the charge, so the
                        // shard that answers is charged for it once.
                        assert_eq!(looked.first().unwrap().used, 1, "{number}");
                    }
                }
            }
        }
    }
    let Backend::Redis(fleet) = &store else { panic!("{store:?}") };
    let Counts { fallback_decisions, unrefunded, deadline_misses, .. } = fleet.counts();
    assert!(fallback_decisions > 0, "no charge touched the shard that is gone");
    assert_eq!((unrefunded, deadline_misses), (0, 0));
}
