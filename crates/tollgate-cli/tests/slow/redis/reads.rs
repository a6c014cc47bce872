//! Which server answers status queries.

use crate::kit::Server;
use crate::redis::fleet::Fleet;
use crate::support::world::Proxy;

const TEXT: &str = "
limits: { core: { quota: 10, window: 1h, per: token } }
rules: [{ limits: core }]
answers: { headers: github, status_path: /rate_limit }";

const REQUESTS: u64 = 20;

#[tokio::test]
async fn statuses_are_read_from_a_replica_and_cost_nothing() {
    let fleet = Fleet::start().await;
    let proxy = Proxy::start(&fleet.policy(TEXT, "deadline: 10s"));
    let token = fleet.token_on(0, &proxy).await;
    fleet.primaries[0].is_followed().await;
    proxy.wait_for_log(&format!("reading from the replica {}", fleet.replicas[0].url()));
    let [primary, replica] = [&fleet.primaries[0], &fleet.replicas[0]];
    let before = [peeks(primary).await, peeks(replica).await];
    for _ in 0..REQUESTS {
        let answer = proxy.get("/rate_limit", &[&token]);
        assert!(answer.body.contains(r#""limit":10,"used":1,"remaining":9"#), "{answer:?}");
    }
    let after = [peeks(primary).await, peeks(replica).await];
    assert_eq!([after[0] - before[0], after[1] - before[1]], [0, REQUESTS]);
}

#[tokio::test]
async fn statuses_are_read_from_the_primary_where_the_file_says_so() {
    let fleet = Fleet::start().await;
    let proxy = Proxy::start(&fleet.policy(TEXT, "deadline: 10s, reads: primaries"));
    let token = fleet.token_on(0, &proxy).await;
    for _ in 0..REQUESTS {
        assert_eq!(proxy.get("/rate_limit", &[&token]).status, 200);
    }
    assert!(peeks(&fleet.primaries[0]).await >= REQUESTS);
    assert_eq!(peeks(&fleet.replicas[0]).await, 0);
}

/// Returns how often the server ran the read-only function.
async fn peeks(server: &Server) -> u64 {
    let mut connection = server.connect().await;
    let info: String =
        redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await.unwrap();
    let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_fcall_ro:calls="));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}
