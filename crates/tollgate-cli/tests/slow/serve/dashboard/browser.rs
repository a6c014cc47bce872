//! Chromium, controlled over a pipe with the DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::node::PATIENCE;

/// The time between two checks of a page.
const LOOK: Duration = Duration::from_millis(50);

/// Runs before the scripts of each page: records blocked requests and unwanted code. Names that
/// contain scripts call `hit`.
const WATCH: &str = "
    window.hits = 0;
    window.hit = () => { window.hits += 1; };
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) =>
        window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));";

/// A browser, which is stopped when this value is dropped.
pub(super) struct Browser {
    child: Child,
    pipe: Arc<Mutex<Pipe>>,
    _profile: TempDir,
}

/// One page of the browser.
pub(super) struct Page {
    pipe: Arc<Mutex<Pipe>>,
    session: String,
}

struct Pipe {
    requested: ChildStdin,
    response: Receiver<Value>,
    last: u64,
    /// The recorded events.
    events: Vec<Value>,
}

impl Browser {
    pub(super) fn start() -> Self {
        Self::with(&[])
    }

    /// Starts a browser with `flags`.
    pub(super) fn with(flags: &[&str]) -> Self {
        let profile = TempDir::new().unwrap();
        // The protocol uses the file descriptors 3 and 4.
        let script = "exec chromium \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut child = Command::new("sh")
            .args(["-c", script, "chromium", "--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--remote-debugging-pipe", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--disable-quic"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requested = child.stdin.take().unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let (teller, response) = channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if teller.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let pipe = Pipe { requested, response, last: 0, events: Vec::new() };
        Self { child, pipe: Arc::new(Mutex::new(pipe)), _profile: profile }
    }

    /// Opens a new page at `url` and waits for its document.
    pub(super) fn open(&mut self, url: &str) -> Page {
        let mut pipe = self.pipe.lock().unwrap();
        let target = pipe.call(None, "Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = pipe.call(None, "Target.attachToTarget", &attach);
        drop(pipe);
        let session = session["sessionId"].as_str().unwrap().to_owned();
        let page = Page { pipe: Arc::clone(&self.pipe), session };
        for domain in ["Page", "Log", "Runtime", "DOM"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": WATCH }));
        page.go(url);
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Page {
    /// Opens `url`, and waits until the document is loaded.
    pub(super) fn go(&self, url: &str) {
        self.call("Page.navigate", &json!({ "url": url }));
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Evaluates `expression`, which may be a promise.
    #[track_caller]
    pub(super) fn value(&self, expression: &str) -> Value {
        let requested = json!({
            "expression": expression, "awaitPromise": true, "returnByValue": true,
        });
        let response = self.call("Runtime.evaluate", &requested);
        assert!(response["exceptionDetails"].is_null(), "{expression}: {response}");
        response["result"]["value"].clone()
    }

    /// Waits until `condition` is true.
    #[track_caller]
    pub(super) fn until(&self, condition: &str) {
        let deadline = Instant::now() + PATIENCE;
        let requested = json!({ "expression": format!("Boolean({condition})") });
        // While the page navigates, there may be no document in which an expression can be
        // evaluated.
        let is_so = || {
            let response = self.respond("Runtime.evaluate", &requested);
            let failed = &response["result"]["exceptionDetails"];
            assert!(failed.is_null(), "{condition}: {failed}");
            response["result"]["result"]["value"] == json!(true)
        };
        while !is_so() {
            let text = || self.value("document.body?.innerText ?? ''");
            assert!(Instant::now() < deadline, "never {condition}; the page is\n{}", text());
            thread::sleep(LOOK);
        }
    }

    /// Waits until the page contains `text`.
    #[track_caller]
    pub(super) fn shows(&self, text: &str) {
        self.until(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Clicks the element with this role or tag and `text`.
    #[track_caller]
    pub(super) fn click(&self, selector: &str, text: &str) {
        let find = find(selector, text);
        self.until(&find);
        self.value(&format!("({find}).click()"));
    }

    /// Types `text` into the field with the label `label`.
    #[track_caller]
    pub(super) fn write(&self, label: &str, text: &str) {
        let input = format!("({})?.control", find("label", label));
        self.until(&input);
        self.value(&format!("{{ const field = {input}; field.focus(); field.select?.(); }}"));
        self.call("Input.insertText", &json!({ "text": text }));
    }

    /// Sets the file of the field that `selector` matches.
    pub(super) fn choose(&self, selector: &str, path: &std::path::Path) {
        self.until(&format!("document.querySelector({})", json!(selector)));
        let document = self.call("DOM.getDocument", &json!({}));
        let requested = json!({ "nodeId": document["root"]["nodeId"], "selector": selector });
        let node = self.call("DOM.querySelector", &requested);
        let files = json!({ "nodeId": node["nodeId"], "files": [path] });
        self.call("DOM.setFileInputFiles", &files);
    }

    /// Presses Enter or a key that types nothing.
    pub(super) fn press(&self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => panic!("which key is {key}?"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [kind, "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code,
            });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Checks that no unwanted code ran and that there were no errors.
    #[track_caller]
    pub(super) fn is_clean(&self) {
        let ran = self.value("({ hits: window.hits, violations: window.violations })");
        assert_eq!(ran, json!({ "hits": 0, "violations": [] }));
        let pipe = self.pipe.lock().unwrap();
        let complaints: Vec<&Value> = pipe
            .events
            .iter()
            .filter(|event| match event["method"].as_str().unwrap_or_default() {
                // The page shows refusals to its reader, so they are not errors.
                "Log.entryAdded" => event["params"]["entry"]["source"] != "network",
                "Runtime.exceptionThrown"
                | "Runtime.consoleAPICalled"
                | "Page.javascriptDialogOpening" => true,
                _ => false,
            })
            .collect();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    pub(super) fn call(&self, method: &str, parameters: &Value) -> Value {
        self.pipe.lock().unwrap().call(Some(&self.session), method, parameters)
    }

    /// Returns the whole response to a command, which may be an error.
    fn respond(&self, method: &str, parameters: &Value) -> Value {
        self.pipe.lock().unwrap().respond(Some(&self.session), method, parameters)
    }
}

/// Returns an expression for the element that `selector` matches with exactly this text.
fn find(selector: &str, text: &str) -> String {
    format!(
        "[...document.querySelectorAll({})].find((one) => one.textContent.trim() === {})",
        json!(selector),
        json!(text)
    )
}

impl Pipe {
    fn call(&mut self, session: Option<&str>, method: &str, parameters: &Value) -> Value {
        let response = self.respond(session, method, parameters);
        assert!(response["error"].is_null(), "{method}: {response}");
        response["result"].clone()
    }

    fn respond(&mut self, session: Option<&str>, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut requested = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = session {
            requested["sessionId"] = session.into();
        }
        self.requested.write_all(format!("{requested}\0").as_bytes()).unwrap_or_else(|error| {
            panic!("cannot run chromium ({error}): install it, with `apt-get install -y chromium`")
        });
        loop {
            let response = self.response.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("chromium did not answer {method} ({error}): is it installed?")
            });
            if response["id"] == self.last {
                return response;
            }
            self.events.push(response);
        }
    }
}
