//! Sends each request of the corpus to the proxy, and compares the requests that reach the upstream
//! with the expected requests.

mod sound;
mod unsound;

use crate::{
    setup::{Proxy, exchange, header, statuses},
    upstream::Recorder,
};

/// The request that is sent right after each request of the corpus. The upstream receives it after
/// a valid request, and must never receive it after an invalid request.
const SENTINEL: &[u8] = b"GET /sentinel HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn every_sound_request_is_seen_as_it_was_meant() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    for (request, meant) in sound::ROWS {
        let answer = exchange(proxy.address, [request, SENTINEL].concat()).await;
        let row = String::from_utf8_lossy(request);
        let expected: Vec<&str> = meant.iter().copied().chain(["GET /sentinel []"]).collect();
        assert_eq!(observed(&upstream), expected, "{row:?} was answered {answer:?}");
        assert_eq!(statuses(&answer), vec![200; expected.len()], "{row:?}: {answer:?}");
    }
}

#[tokio::test]
async fn no_unsound_request_is_seen_nor_what_follows_it() {
    let upstream = Recorder::start().await;
    let proxy = Proxy::start(upstream.address).await;
    let rows =
        unsound::ROWS.iter().map(|row| (*row, 400)).chain(unsound::OTHERWISE.iter().copied());
    let mut disagreements = Vec::new();
    for (request, status) in rows {
        let answer = exchange(proxy.address, [request, SENTINEL].concat()).await;
        let reply = header(&answer, "content-type") == Some("application/problem+json");
        let closed = header(&answer, "connection") == Some("close");
        let observed = observed(&upstream);
        if statuses(&answer) != [status] || !reply || !closed || !observed.is_empty() {
            let row = String::from_utf8_lossy(request);
            disagreements.push(format!("{row:?}\n  answered {answer:?}\n  seen {observed:?}"));
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

#[test]
fn the_corpus_is_large_enough_to_mean_something() {
    assert!(sound::ROWS.len() >= 50, "{}", sound::ROWS.len());
    assert!(unsound::ROWS.len() + unsound::OTHERWISE.len() >= 100, "{}", unsound::ROWS.len());
}

fn observed(upstream: &Recorder) -> Vec<String> {
    upstream
        .take()
        .into_iter()
        .map(|observed| format!("{} [{}]", observed.line, observed.body))
        .collect()
}
