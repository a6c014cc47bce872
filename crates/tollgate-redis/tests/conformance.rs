//! The suite that every store passes, with the step as a function and as a script.

mod kit;

use kit::Server;
use tollgate_conformance::{PlainHash, check};
use tollgate_redis::{Choice, Keys, Redis, Runs};

#[tokio::test]
async fn the_suite_passes_as_a_function() {
    let server = Server::start().await;
    let store = Redis::new(server.connect().await, keys(), Choice::Best).await.unwrap();
    assert_eq!(store.runs(), Runs::Function);
    check(&store, "function").await;
}

#[tokio::test]
async fn the_suite_passes_as_a_script() {
    let server = Server::start().await;
    let store = Redis::new(server.connect().await, keys(), Choice::Script).await.unwrap();
    check(&store, "script").await;
    assert_eq!(store.runs(), Runs::Script);
}

fn keys() -> Keys {
    Keys::new(PlainHash)
}
