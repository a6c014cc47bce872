//! Settings with which no store can be opened, and stores that are opened and not used.

use tollgate_backend::{Backend, OpenError, Refunds, limiter};
use tollgate_policy::{KeySource, StoreSettings, Topology};
use tollgate_redis::CircuitState;

use crate::kit::{Server, Version};
use crate::redis::fleet::{key, loaded, open, shards};
use crate::redis::pairs::served;

#[test]
fn a_store_in_redis_says_that_it_needs_a_runtime() {
    let loaded = loaded("shards: { a: { primary: \"redis://127.0.0.1:9\" } }");
    let error =
        Backend::open(&loaded.settings, key(), &loaded.policy, Refunds::ByResponses).unwrap_err();
    assert!(matches!(error, OpenError::NoRuntime), "{error}");
}

#[tokio::test]
async fn what_is_wrong_is_reported_with_its_key_in_the_file() {
    let mut loaded = loaded("shards: { north: { primary: \"redis://127.0.0.1:9\" } }");
    loaded.settings.key = KeySource::File { path: "/no/such/secret".into() };
    let message = limiter(loaded.clone(), Refunds::ByResponses).unwrap_err().to_string();
    assert!(message.starts_with("secret: the file /no/such/secret"), "{message}");

    let StoreSettings::Redis(redis) = &mut loaded.settings.store else { panic!("no Redis") };
    let primary = "redis://:hunter2@host:port".into();
    redis.shards[0].topology = Topology::Static { primary, replicas: Vec::new() };
    let error = Backend::open(&loaded.settings, key(), &loaded.policy, Refunds::ByResponses)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("store.redis.shards.north.primary: "), "{error}");
    assert!(!error.contains("hunter2"), "{error}");

    let StoreSettings::Redis(redis) = &mut loaded.settings.store else { panic!("no Redis") };
    redis.shards.clear();
    let error = Backend::open(&loaded.settings, key(), &loaded.policy, Refunds::ByResponses)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("the servers of the store: "), "{error}");
}

#[tokio::test]
async fn a_function_that_is_insisted_on_is_not_replaced_by_a_script() {
    let server = Server::start_version(Version::Redis62, &[]).await;
    let store =
        open(&loaded(&format!("{}, scripting: function, deadline: 10s", shards(&[&server]))));
    let status = store.started().await;
    assert_eq!(status[0].primary(), None);
    assert_eq!(status[0].batchers[0].circuit_state, CircuitState::Open);

    let store = open(&loaded(&format!("{}, deadline: 10s", shards(&[&server]))));
    assert_eq!(served(&store).await[0].primary(), Some(&*server.url()));
}
