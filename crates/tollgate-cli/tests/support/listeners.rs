//! The proxy and `/v1/authorize` with the same policy.

use super::client::Client;
use super::node::{Folder, Node};
use super::world::{Answer, Proxy};

/// A request to both listeners.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) client: &'a str,
    pub(crate) fields: &'a [&'a str],
}

/// A proxy and a node with the same policy, each with its own counters.
pub(crate) struct Listeners {
    pub(crate) folder: Folder,
    pub(crate) proxy: Proxy,
    pub(crate) node: Node,
}

impl Listeners {
    /// Starts a proxy and a node with `policy`, which must trust the proxies at 127.0.0.1.
    pub(crate) fn open(policy: &str, files: &[(&str, &str)]) -> Self {
        let folder = Folder::with(policy);
        files.iter().for_each(|(name, text)| folder.write(name, text));
        let (proxy, node) = (Proxy::start(&folder.policy()), Node::open(&folder.policy()));
        Self { folder, proxy, node }
    }

    /// Returns the status of the request, which is the same at both listeners.
    pub(crate) fn status(&self, request: &Request<'_>) -> u16 {
        let Request { method, target, client, fields } = request;
        let lines: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\
             x-forwarded-for: {client}\r\n{lines}\r\n"
        );
        let proxied = Answer::parse(&self.proxy.send(head.as_bytes()));
        let mut listener = Client::connect(self.node.listener("http")).unwrap();
        let sub_request = format!(
            "GET /v1/authorize HTTP/1.1\r\nhost: test\r\nx-forwarded-method: {method}\r\n\
             x-forwarded-uri: {target}\r\nx-forwarded-for: {client}\r\n{lines}\r\n"
        );
        listener.send(sub_request).unwrap();
        let checked = listener.answer().unwrap();
        let admitted = |status: u16| if status < 300 { 200 } else { status };
        let (proxied, checked) = (admitted(proxied.status), admitted(checked.status));
        assert_eq!(proxied, checked, "{method} {target} from {client} with {fields:?}");
        proxied
    }

    pub(crate) fn get(&self, target: &str, client: &str, fields: &[&str]) -> u16 {
        self.status(&Request { method: "GET", target, client, fields })
    }
}

/// Returns the policy of the recipe with this heading.
pub(crate) fn recipe(heading: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recipes.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let (_, policy) = section.split_once("```yaml\n").unwrap();
    policy.split_once("```").unwrap().0.to_owned()
}
