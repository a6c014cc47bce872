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

/// Sends three requests, of which the first two are admitted. Their responses report the ends of
/// the windows.
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

#[test]
fn each_customer_has_its_billing_day_at_the_proxy_and_at_the_listener() {
    let policy = recipe("A billing day for each customer").replace("10_000", "2");
    let folder = Folder::with(&policy);
    let (proxy, node) = (Proxy::start(&folder.policy()), Node::open(&folder.policy()));
    let proxied = |fields: &str| {
        let request = format!("GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n{fields}\r\n");
        Answer::parse(&proxy.send(request.as_bytes()))
    };
    let checked = |fields: &str| {
        let mut client = Client::connect(node.listener("http")).unwrap();
        let request = format!(
            "GET /v1/authorize HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\
             x-forwarded-method: GET\r\nx-forwarded-uri: /\r\nx-forwarded-for: 192.0.2.7\r\n\
             {fields}\r\n"
        );
        client.send(request).unwrap();
        Answer::parse(&client.rest())
    };
    let days = [("amy", "15"), ("bob", "20"), ("eve", "40")];
    for send in [&proxied as &dyn Fn(&str) -> Answer, &checked] {
        for (customer, day) in days {
            let first_day = day.parse().ok().filter(|day| *day <= 31).unwrap_or(1);
            let month = schedule(Period::Month { first_day }, "Europe/Berlin").unwrap();
            for number in 1..=3 {
                let before = now();
                let answer = send(&format!("x-customer: {customer}\r\nx-renewal: {day}\r\n"));
                let after = now();
                assert_eq!(answer.status == 429, number == 3, "{customer}: {answer:?}");
                let seconds = |now| month.window_at(now).end.since(now).get().div_ceil(1_000);
                if month.window_at(before) == month.window_at(after) {
                    let reset = reset(&answer, "month");
                    assert!((seconds(after)..=seconds(before)).contains(&reset), "{answer:?}");
                }
            }
        }
        // Another day keeps the units that are used.
        assert_eq!(send("x-customer: amy\r\nx-renewal: 20\r\n").status, 429);
    }
}
