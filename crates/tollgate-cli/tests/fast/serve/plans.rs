//! Free and paid plans at the proxy and at `/v1/authorize`.

use crate::support::client::Client;
use crate::support::node::{Folder, Node};
use crate::support::world::{Answer, Proxy};

/// Returns the shipped policy with quotas of one, two and three.
fn policy() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/plans.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let values = "{ free: 60, pro: 6_000, enterprise: 60_000 }, default: 30";
    assert!(text.contains(values), "{text}");
    text.replace(values, "{ free: 2, pro: 3, enterprise: 9 }, default: 1")
}

/// Sends requests of users with each plan, the last of which is refused.
fn check(send: impl Fn(&str) -> Answer) {
    for (plan, quota) in [("free", 2), ("pro", 3), ("other", 1)] {
        let fields = format!("x-user: user-of-{plan}\r\nx-plan: {plan}\r\n");
        for number in 1..=quota + 1 {
            let answer = send(&fields);
            assert_eq!(answer.status == 429, number > quota, "{plan}: {answer:?}");
            let policy = format!("\"requests\";q={quota};w=60");
            assert!(answer.field("ratelimit-policy").contains(&policy), "{plan}: {answer:?}");
        }
    }
    // A user that changes to a larger plan continues in the same window.
    let upgraded = send("x-user: user-of-free\r\nx-plan: pro\r\n");
    assert_ne!(upgraded.status, 429, "{upgraded:?}");
    assert!(upgraded.field("ratelimit").contains("\"requests\";r=0"), "{upgraded:?}");
    assert_eq!(send("x-user: user-of-free\r\nx-plan: pro\r\n").status, 429);
}

#[test]
fn each_plan_has_its_quota_at_the_proxy_and_at_the_listener() {
    let folder = Folder::with(&policy());
    let proxy = Proxy::start(&folder.policy());
    let end = "connection: close\r\n\r\n";
    check(|fields| {
        let request = format!("GET / HTTP/1.1\r\nhost: test\r\n{fields}{end}");
        Answer::parse(&proxy.send(request.as_bytes()))
    });
    let node = Node::open(&folder.policy());
    check(|fields| {
        let mut client = Client::connect(node.listener("http")).unwrap();
        let original =
            "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-for: 192.0.2.7\r\n";
        client
            .send(format!("GET /v1/authorize HTTP/1.1\r\nhost: test\r\n{original}{fields}{end}"))
            .unwrap();
        Answer::parse(&client.rest())
    });
}
