//! The load generator of the benchmark of listeners, without external programs.

use std::process::Command;
use std::sync::Arc;

use tollgate_bench::listeners::contender::{Contender, Programs, policy};
use tollgate_bench::listeners::load::Load;
use tollgate_bench::listeners::upstream::Upstream;
use tollgate_bench::server::Server;

/// Returns the paths of the programs. Only the programs `bare_answer` and `bare_proxy` exist.
fn programs(upstream: &Upstream) -> Programs {
    Programs {
        tollgate: "none".into(),
        throttlecrab: "none".into(),
        bare_answer: env!("CARGO_BIN_EXE_bare_answer").into(),
        bare_proxy: env!("CARGO_BIN_EXE_bare_proxy").into(),
        policy: "none".into(),
        upstream: upstream.address(),
        directory: "none".into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_to_a_bare_server_or_through_a_bare_proxy_is_answered() {
    let upstream = Upstream::start().await.unwrap();
    let programs = programs(&upstream);
    for bare in [Contender::BareAnswer, Contender::BareProxy] {
        let server = Server::start(|port| bare.command(&programs, port)).unwrap();
        let (address, wire) = (server.address(), bare.wire());
        let load = Load { address, wire, connections: 3, in_flight: 1 };
        let subjects: Arc<[u32]> = (0..100).collect();
        assert_eq!(load.run(&subjects).await.unwrap(), 100, "{bare}");
        assert!(!server.processor_time().unwrap().is_zero());
        server.end().unwrap();
    }
}

#[tokio::test]
async fn a_server_that_ends_at_once_is_an_error_with_its_own_words() {
    let failing = |_| {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such listener >&2; exit 2"]);
        command
    };
    let error = Server::start(failing).unwrap_err();
    assert!(error.to_string().contains("no such listener"), "{error}");
}

#[test]
fn the_policy_of_the_run_is_one() {
    let loaded = tollgate_policy::parse("listeners.yaml", &policy());
    let loaded = loaded.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(loaded.policy.limits().len(), 2);
}
