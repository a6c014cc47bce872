//! Read-only commands write nothing to the servers, and report the status of the servers.

use redis::Value;

use crate::kit::{Server, Version, on_every_version};
use crate::shards::access::{admit, found};
use crate::shards::fleet::Fleet;

on_every_version! {
    an_empty_server_stays_empty
    rights_that_the_step_lacks_are_told_before_it_is_given
}

async fn an_empty_server_stays_empty(version: Version) {
    let server = Server::start_version(version, &[]).await;
    let fleet = Fleet::over(vec![server]);
    let policy = fleet.policy("policy.yaml", &[0], None);
    let policy = policy.to_str().unwrap();
    let server = &fleet.servers[0];
    for round in 0..2 {
        let response = crate::shards::doctor::doctor(&["--policy", policy]);
        assert!(response.status.success(), "{round}: {response:?}");
        let response = crate::shards::fleet::shards(&["--policy", policy]);
        assert!(response.status.success(), "{round}: {response:?}");
        assert_eq!(requested(server, &["KEYS", "*"]).await, Value::Array(Vec::new()));
        if version.has_functions() {
            assert_eq!(requested(server, &["FUNCTION", "LIST"]).await, Value::Array(Vec::new()));
        }
        let memory: String = redis::from_redis_value(requested(server, &["INFO"]).await).unwrap();
        let scripts = u8::from(version.has_functions());
        let kept = format!("number_of_cached_scripts:{scripts}\r\n");
        assert!(memory.contains(&kept), "{round}: no {kept} in {memory}");
    }
}

async fn rights_that_the_step_lacks_are_told_before_it_is_given(version: Version) {
    let server = Server::start_version(version, &[]).await;
    admit(&server, &version.shipped_user()).await;
    let script = "decisions run as a script, which is slower and is lost when a server restarts";
    let script = ("advice".to_owned(), script.to_owned());
    let step = |user: &str| found(&server, user, "scripting");
    let shipped = "tollgate:password@";
    if version.has_functions() {
        let (level, what) = step(shipped);
        assert_eq!(level, "ok", "{what}");
        assert!(what.starts_with("decisions run as a function: about "), "{what}");
        server.execute(&["ACL", "SETUSER", "tollgate", "-function|load"]).await;
    }
    assert_eq!(step(shipped), script);
    server.execute(&["ACL", "SETUSER", "tollgate", "-script"]).await;
    let (level, what) = found(&server, shipped, "serves");
    assert_eq!(level, "problem", "{what}");
}

async fn requested(server: &Server, words: &[&str]) -> Value {
    let mut connection = server.connect().await;
    redis::cmd(words[0]).arg(&words[1..]).query_async(&mut connection).await.unwrap()
}
