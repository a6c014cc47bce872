//! A replica with a slow full resynchronization.

use tollgate_conformance::{Figure, assert_held};
use tollgate_redis::{CircuitState, RuntimeChoice};

use crate::kit::{QUICK, Server};
use crate::replicas::pair::{Client, Pair};
use crate::replicas::{NOW, until};

/// The arguments that slow down loading, and make the server report that it loads.
const SLOWLY: [&str; 4] =
    ["--key-load-delay", "200", "--loading-process-events-interval-bytes", "1024"];
const KEYS: &str = "2000";

/// While the replica loads its data, each charge counts, and no peek is answered from the
/// incomplete data. Until the loading is detected, answers of the replica are at most as old as the
/// permitted lag.
#[tokio::test]
async fn a_replica_that_loads_is_not_read_from() {
    let arguments = [&QUICK[..], &["--enable-debug-command", "yes"]].concat();
    let (primary, replica) =
        (Server::start_with(&arguments).await, Server::start_with(&SLOWLY).await);
    primary.execute(&["DEBUG", "POPULATE", KEYS]).await;
    replica.follow(&primary).await;
    let pair = Pair { primary, replica };
    let client = Client::connect(&pair.settings(), RuntimeChoice::Best).await;
    let known = client.take(NOW, 3).await.unwrap().used;
    pair.primary.is_followed().await;

    // After a promotion, the replica has a replication stream of its own, so no partial
    // resynchronization is possible.
    pair.replica.promote().await;
    pair.replica.begin_to_follow(&pair.primary).await;
    let (mut used, mut loading, mut wrong) = (known, 0, 0);
    while !is_in_step(&pair.replica).await {
        loading += u64::from(is_loading(&pair.replica).await);
        assert_eq!(client.take(NOW, 1).await.unwrap().used, used + 1);
        used += 1;
        let seen = client.used().await;
        wrong += u64::from(!(known..=used).contains(&seen));
    }
    assert_held(&[
        Figure::fault_seen("looks while it loaded", loading),
        Figure::at_most("looks that told of less than it had, or of more than was used", wrong, 0),
    ]);
    until(|| client.circuit_state(1) == CircuitState::Closed).await;
    pair.primary.is_followed().await;
    let before = client.store.status()[1].counts.jobs;
    assert_eq!(client.used().await, used);
    assert_eq!(client.store.status()[1].counts.jobs, before + 1, "the replica is asked again");
}

async fn is_loading(server: &Server) -> bool {
    server.info("persistence").await.contains("loading:1")
}

async fn is_in_step(server: &Server) -> bool {
    let info = server.info("replication").await;
    info.contains("role:slave") && info.contains("master_link_status:up")
}
