//! The examples that need no socket.

use http::Request;

#[path = "../../examples/pace.rs"]
#[allow(dead_code, reason = "the test calls the work instead of main")]
mod pace;

#[path = "../../examples/without_tower.rs"]
#[allow(dead_code, reason = "the test calls the handler instead of main")]
mod without_tower;

#[tokio::test]
async fn a_tool_paces_its_own_calls() {
    // 5 at once, and 3 more at 50 a second.
    let elapsed = pace::call_all(&["a.example.com", "b.example.com"], 8).await.unwrap();
    assert!(elapsed.as_millis() >= 50, "{elapsed:?}");
}

#[tokio::test]
async fn a_server_without_tower_answers_by_itself() {
    let limiter = without_tower::limiter().unwrap();
    let peer = "192.0.2.7:4711".parse().unwrap();
    let mut statuses = Vec::new();
    for path in ["/search", "/search", "/search", "/", "/health"] {
        let (parts, ()) = Request::get(path).body(()).unwrap().into_parts();
        let response = without_tower::handle(&limiter, &parts, peer).await;
        assert_eq!(response.headers().contains_key("retry-after"), response.status() == 429);
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429, 429, 200]);
}
