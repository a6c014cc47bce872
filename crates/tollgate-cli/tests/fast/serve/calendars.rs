//! Windows of the calendar at the proxy and at `/v1/authorize`.

use tollgate::{Clock, SystemClock};
use tollgate_calendar::{Period, schedule};
use tollgate_core::Timestamp;

use crate::support::client::Client;
use crate::support::listeners::recipe;
use crate::support::node::{Folder, Node};
use crate::support::world::{Answer, Proxy};

const REQUEST: &str = "HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-customer: amy\r\n";

fn now() -> Timestamp {
    SystemClock.now()
}

/// Returns the seconds until the reset of `limit`.
fn reset(answer: &Answer, limit: &str) -> u64 {
    let field = answer.field("ratelimit");
    let (_, rest) =
        field.split_once(&format!("\"{limit}\";")).unwrap_or_else(|| panic!("{answer:?}"));
    let (_, rest) = rest.split_once("t=").unwrap();
    rest.split([',', ';']).next().unwrap().parse().unwrap()
}

/// Returns the policy of the recipe, with a quota of two per month.
fn policy() -> String {
    recipe("A monthly quota with a billing day").replace("10_000", "2")
}

/// Sends three requests; the first two are admitted, and report the ends of the windows.
fn check(send: impl Fn() -> Answer) {
    let month = schedule(Period::Month { first_day: 15 }, "Europe/Berlin").unwrap();
    let day = schedule(Period::Day, "Europe/Berlin").unwrap();
    for number in 1..=3 {
        let before = now();
        let answer = send();
        let after = now();
        assert_eq!(answer.status == 429, number == 3, "{answer:?}");
        for (name, windows) in [("month", month), ("day", day)] {
            let seconds = |now| windows.window_at(now).end.since(now).get().div_ceil(1_000);
            if number == 3 && name == "day" || windows.window_at(before) != windows.window_at(after)
            {
                continue;
            }
            let reset = reset(&answer, name);
            assert!((seconds(after)..=seconds(before)).contains(&reset), "{name}: {answer:?}");
        }
    }
}

#[test]
fn the_reset_is_the_end_of_the_customers_month_at_the_proxy_and_at_the_listener() {
    let folder = Folder::with(&policy());
    let proxy = Proxy::start(&folder.policy());
    check(|| Answer::parse(&proxy.send(format!("GET / {REQUEST}\r\n").as_bytes())));
    let node = Node::open(&folder.policy());
    check(|| {
        let mut client = Client::connect(node.listener("http")).unwrap();
        let fields =
            "x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-for: 192.0.2.7\r\n";
        client.send(format!("GET /v1/authorize {REQUEST}{fields}\r\n")).unwrap();
        Answer::parse(&client.rest())
    });
}
