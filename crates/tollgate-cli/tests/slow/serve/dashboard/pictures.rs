//! The guide's pictures: a node of a fleet with traffic in waves, and the pages of its dashboard.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{Browser, Page, address};
use crate::kit::Server;
use crate::support::client::Client;
use crate::support::node::{Folder, Node, command};

const POLICY: &str = "
secret: { env: TOLLGATE_SECRET }
subjects:
  token: { header: authorization }
  address: { client_address: {} }
  user: { header: x-user }
limits:
  everybody: { quota: 50_000, window: 1m }
  core: { quota: 2_500, window: 1m, per: token }
  search: { quota: 400, window: 1m, per: token }
  anonymous: { quota: 120, window: 10s, per: address }
  sign-in: { algorithm: sliding_log, quota: 5, window: 10s, per: user }
  concurrent: { algorithm: concurrency, quota: 100, per: token }
  points: { algorithm: token_bucket, quota: 1_800, window: 1m, burst: 400, per: token }
rules:
  - { name: search, match: { path: /search/**, has: token }, limits: [search, everybody] }
  - { name: read, match: { has: token }, limits: [core, points, everybody] }
  - { name: stranger, limits: [anonymous, everybody] }
";

/// The time between requests at peak load, and the number of concurrent requests.
const PACE: Duration = Duration::from_millis(6);
const WAVE: usize = 1_000;

const WIDTH: u32 = 1_180;

/// Returns an expression for the points of the line that `selector` matches.
fn points(selector: &str) -> String {
    format!(
        "document.querySelector({})?.getAttribute('d').split(/[ML]/).length - 1",
        json!(selector)
    )
}

/// Returns the least number of points in a chart. The first point is shown immediately. With
/// `UPDATE=1`, the test waits for the points of 45 seconds.
fn looks() -> usize {
    if is_kept() { 23 } else { 1 }
}

fn is_kept() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// Traffic of a node. Charges are sent until this value is dropped.
struct Traffic {
    ended: Arc<AtomicBool>,
    client: Option<JoinHandle<()>>,
}

impl Traffic {
    fn start(node: &Node) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (is_over, listener) = (Arc::clone(&ended), node.listener("http").to_owned());
        let client = thread::spawn(move || {
            let mut client = Client::connect(&listener).unwrap();
            for turn in 0.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                charge(&mut client, turn);
                thread::sleep(if usize::is_multiple_of(turn / WAVE, 2) { PACE } else { 2 * PACE });
            }
        });
        Self { ended, client: Some(client) }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let response = self.client.take().unwrap().join();
        assert!(thread::panicking() || response.is_ok(), "the node stopped answering");
    }
}

/// Sends one of several kinds of requests.
fn charge(client: &mut Client, turn: usize) {
    let token = format!("Bearer t{}", turn % 7);
    let check = match turn % 20 {
        0 => json!({ "limits": [{ "name": "sign-in", "subject": { "user": "mallory" } }] }),
        1 => {
            json!({ "limits": [{ "name": "sign-in", "subject": { "user": format!("user-{turn}") } }] })
        }
        2 => {
            json!({ "request": { "method": "GET", "path": "/search/code", "headers": { "authorization": token } } })
        }
        3..8 => {
            let address = format!("192.0.2.{}", turn % 9);
            json!({ "limits": [{ "name": "anonymous", "subject": { "address": address } }, { "name": "everybody" }] })
        }
        _ => {
            json!({ "request": { "method": "GET", "path": "/repos", "headers": { "authorization": token } } })
        }
    };
    let body = check.to_string();
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    client.send(format!("{head}content-length: {}\r\n\r\n{body}", body.len())).unwrap();
    assert_eq!(client.answer().unwrap().status, 200);
}

/// Sets a kill switch, so the pictures show an active switch.
fn only_count_searches(node: &Node) {
    let switched = Command::new(env!("CARGO_BIN_EXE_tollgate"))
        .args(["keys", "override", "--admin", &format!("http://{}", node.listener("admin"))])
        .args(["--rule", "search", "--counted", "--for", "2h", "--reason", "it refuses a partner"])
        .output()
        .unwrap();
    assert!(switched.status.success(), "{}", String::from_utf8_lossy(&switched.stderr));
}

/// Sets the height of the window, without scroll bars.
fn frame(page: &Page, height: u32) {
    let size = json!({ "width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": false });
    page.call("Emulation.setDeviceMetricsOverride", &size);
    page.call("Emulation.setScrollbarsHidden", &json!({ "hidden": true }));
}

/// Takes a picture with this height, and stores it in the guide with `UPDATE=1`.
fn take(page: &Page, name: &str, height: u32) {
    frame(page, height);
    let response = page.call("Page.captureScreenshot", &json!({ "format": "png" }));
    let picture = STANDARD.decode(response["data"].as_str().unwrap()).unwrap();
    // Width and height follow the signature and the name of the first chunk.
    let measured = [16, 20].map(|at| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap()));
    assert_eq!((&picture[1..4], measured), (&b"PNG"[..], [WIDTH, height]));
    if is_kept() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images");
        std::fs::write(format!("{folder}/{name}.png"), picture).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_are_as_the_guide_shows_them() {
    let (north, south) = (Server::start().await, Server::start().await);
    let folder = Folder::with(&format!(
        "{POLICY}store: {{ redis: {{ deadline: 250ms, shards: {{ north: {{ primary: \"{}\" }}, \
         south: {{ primary: \"{}\" }} }} }} }}\n",
        north.url(),
        south.url()
    ));
    let any = "127.0.0.1:0";
    let mut start = command(&folder.policy(), &["--http", any, "--admin", any]);
    start.env("TOLLGATE_SECRET", "the same on every node");
    start.env("TOLLGATE_NODE_NAME", "edge-1");
    let node = Node::start(start);
    let _traffic = Traffic::start(&node);

    let mut browser = Browser::start();
    let page = browser.open(&address(&node, ""));
    // The width of a chart is the available width.
    frame(&page, 1_470);
    page.shows("sign-in");
    page.shows("north");
    page.until(&format!("{} >= {}", points("svg.chart path.admitted"), looks()));
    only_count_searches(&node);
    page.shows("Rule search counts and never refuses");
    take(&page, "dashboard-overview", 1_470);

    page.go(&address(&node, "subject?address=192.0.2.3&user=mallory"));
    page.shows("2 limits count this subject");
    page.until(&format!("{} >= {}", points("section table svg path"), looks().div_ceil(3)));
    take(&page, "dashboard-subject", 610);

    page.go(&address(&node, "what-if"));
    let tried = POLICY.replace("secret: { env: TOLLGATE_SECRET }", "");
    // Without `UPDATE=1`, the node saw few requests, and a smaller quota is needed to refuse some.
    let quota = if is_kept() { "quota: 400" } else { "quota: 5" };
    let tried = tried.replace("quota: 2_500", quota).replace("quota: 120", "quota: 60");
    page.write("Another policy to try (optional)", tried.trim_start());
    page.click("button", "Simulate");
    page.shows("Refusals by limit");
    page.until(&format!("{} >= 1", points("svg.chart path.wouldRefuse")));
    take(&page, "dashboard-what-if", 1_375);

    let dark = json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    page.call("Emulation.setEmulatedMedia", &dark);
    page.go(&address(&node, "limits"));
    page.shows("7 rows");
    take(&page, "dashboard-limits", 560);
    page.is_clean();
}
