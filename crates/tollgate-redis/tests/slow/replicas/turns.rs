//! The choice of the server for each call.

use std::collections::BTreeMap;

use tollgate_core::{ChargeId, Cost, Operation};
use tollgate_redis::{Credentials, ReadFrom, RuntimeChoice, Secret, SecretSource, ShardSettings};

use crate::kit::{QUICK, Server, Version, on_every_version};
use crate::replicas::NOW;
use crate::replicas::pair::{Client, Pair};

/// The number of calls that each test makes in each situation.
const CALLS: u64 = 20;

on_every_version! {
    calls_that_only_read_go_to_the_replica
    the_shipped_users_may_read
}

/// Returns the runtimes of the step that `version` supports, each with the command that reads in
/// this runtime.
fn ways(version: Version) -> Vec<(RuntimeChoice, &'static str)> {
    match version {
        Version::Redis62 => vec![(RuntimeChoice::Best, "evalsha")],
        _ => vec![(RuntimeChoice::Best, "fcall_ro"), (RuntimeChoice::Script, "evalsha_ro")],
    }
}

async fn calls_that_only_read_go_to_the_replica(version: Version) {
    for (choice, verb) in ways(version) {
        let pair = Pair::start(version).await;
        let client = Client::connect(&pair.settings(), choice).await;
        client.take(NOW, 3).await.unwrap();
        pair.primary.is_followed().await;
        let (primary, replica) = (pair.primary.steps().await, pair.replica.steps().await);
        for _ in 0..CALLS {
            assert_eq!(client.used().await, 3);
            let peek = Operation::Charge { cost: Cost::PEEK, id: ChargeId(1) };
            assert_eq!(client.apply(NOW, peek).await.unwrap().used, 3);
        }
        assert_eq!(pair.primary.steps().await, primary, "{choice:?}: nobody asked the primary");
        let more = replica.get(verb).unwrap_or(&0) + 2 * CALLS;
        assert_eq!(pair.replica.steps().await.get(verb), Some(&more), "{choice:?}");
        for used in 4..4 + CALLS {
            assert_eq!(client.take(NOW, 1).await.unwrap().used, used);
        }
        assert_eq!(pair.replica.steps().await.get(verb), Some(&more), "it admits nothing");
    }
}

async fn the_shipped_users_may_read(version: Version) {
    let pair = Pair::start(version).await;
    let words = [vec!["ACL".to_owned(), "SETUSER".into()], version.shipped_user()].concat();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    for server in [&pair.primary, &pair.replica] {
        server.execute(&words).await;
    }
    let user = Credentials {
        user: Some("tollgate".into()),
        password: Some(SecretSource::Inline(Secret::new("password"))),
    };
    let settings = pair.settings_with(&[], &user);
    for (choice, verb) in ways(version) {
        let client = Client::connect(&settings, choice).await;
        pair.replica.forget_commands().await;
        client.peek(NOW).await.unwrap();
        assert_eq!(pair.replica.steps().await, BTreeMap::from([(verb.into(), 1)]), "{choice:?}");
    }
}

#[tokio::test]
async fn replicas_take_turns() {
    let pair = Pair::start(Version::default()).await;
    let third = Server::start_with(&QUICK).await;
    third.follow(&pair.primary).await;
    let settings = pair.settings_with(&[&third], &Credentials::default());
    let client = Client::connect(&settings, RuntimeChoice::Best).await;
    pair.replica.forget_commands().await;
    third.forget_commands().await;
    for _ in 0..CALLS {
        client.peek(NOW).await.unwrap();
    }
    let half = BTreeMap::from([("fcall_ro".to_owned(), CALLS / 2)]);
    assert_eq!((pair.replica.steps().await, third.steps().await), (half.clone(), half));
}

#[tokio::test]
async fn the_primary_reads_where_it_is_asked_to() {
    let pair = Pair::start(Version::default()).await;
    let settings = ShardSettings { reads: ReadFrom::Primary, ..pair.settings() };
    let client = Client::connect(&settings, RuntimeChoice::Best).await;
    pair.primary.forget_commands().await;
    client.peek(NOW).await.unwrap();
    assert_eq!(pair.primary.steps().await, BTreeMap::from([("fcall_ro".into(), 1)]));
    assert_eq!(client.store.status().len(), 1, "no connection is held that nobody uses");
}

#[tokio::test]
async fn a_user_that_may_not_call_read_only_commands_reads_by_the_others() {
    let pair = Pair::start(Version::default()).await;
    for server in [&pair.primary, &pair.replica] {
        server.execute(&["ACL", "SETUSER", "default", "-fcall_ro", "-evalsha_ro"]).await;
    }
    for (choice, verb) in [(RuntimeChoice::Best, "fcall"), (RuntimeChoice::Script, "evalsha")] {
        let client = Client::connect(&pair.settings(), choice).await;
        pair.replica.forget_commands().await;
        assert_eq!(client.used().await, 0);
        assert_eq!(pair.replica.steps().await, BTreeMap::from([(verb.into(), 1)]), "{choice:?}");
    }
}
