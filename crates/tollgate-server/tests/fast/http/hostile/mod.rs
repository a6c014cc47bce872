//! Invalid and hostile input. Each row has its exact response, and none is admitted by mistake.

mod heads;

use serde_json::json;

use crate::http::world::{Answered, World};

const COSTS: &str = include_str!("costs.txt");
const BODIES: &str = include_str!("bodies.txt");
const REQUESTS: &str = include_str!("requests.txt");

/// The least number of rows in the tables, including the rows of `heads`.
const LEAST_ROWS: usize = 200;

#[tokio::test]
async fn costs() {
    run(COSTS, |cost| format!(r#"{{"limits":[{{"name":"everybody","cost":{cost}}}]}}"#).into())
        .await;
}

#[tokio::test]
async fn bodies() {
    run(BODIES, bytes).await;
}

#[tokio::test]
async fn requests() {
    run(REQUESTS, |request| format!(r#"{{"request":{request}}}"#).into()).await;
}

#[test]
fn there_are_enough_of_them() {
    assert!(
        [COSTS, BODIES, REQUESTS].map(|table| rows(table).count()).iter().sum::<usize>()
            >= LEAST_ROWS
    );
}

/// An invalid check is refused in a batch as it is refused in a single request, and no check of the
/// batch is charged.
#[tokio::test]
async fn one_in_a_batch_refuses_all() {
    let world = World::new();
    for (line, expected, body) in rows(BODIES) {
        let (status, problem) = expected;
        if status == "200" || problem == "invalid-json" {
            continue;
        }
        let batch = format!(r#"{{"checks":[{{"limits":[{{"name":"everybody"}}]}},{body}]}}"#);
        let answered = world.post("/v1/check/batch", batch).await;
        assert_eq!(answered.problem(status.parse().unwrap()), problem, "{line}");
        let pointer = answered.json()["pointer"].as_str().unwrap().to_owned();
        assert!(pointer.starts_with("/checks/1"), "{pointer} of {body}");
    }
    let everybody = json!({ "limits": [{ "name": "everybody" }] }).to_string();
    assert_eq!(world.post("/v1/peek", everybody).await.ok()["statuses"][0]["used"], 0);
}

/// Sends each row of `table` to a new listener, as a charge and as a peek.
async fn run(table: &str, body: impl Fn(&str) -> Vec<u8>) {
    for (line, (status, outcome), text) in rows(table) {
        for path in ["/v1/check", "/v1/peek"] {
            let answered = World::new().post(path, body(text)).await;
            assert_eq!(
                printed(&answered, status),
                (status, outcome.to_owned()),
                "line {line}: {text}"
            );
        }
    }
}

/// Returns the status, and either whether the request is admitted or the name of the problem.
fn printed<'s>(answered: &Answered, status: &'s str) -> (&'s str, String) {
    if answered.status.as_u16() != 200 {
        return (status, answered.problem(status.parse().unwrap()));
    }
    let admitted = answered.ok()["admitted"] == true;
    ("200", if admitted { "admitted" } else { "refused" }.to_owned())
}

type Row<'t> = (usize, (&'t str, &'t str), &'t str);

fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    let rows = table.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
    rows.map(|(index, line)| {
        let (expected, text) = line.split_once('\t').unwrap();
        (index + 1, expected.split_once(' ').unwrap(), text)
    })
}

/// Replaces each `\xNN` in `text` by that byte.
fn bytes(text: &str) -> Vec<u8> {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(&part.as_bytes()[2..]);
    }
    bytes
}
