//! The page has the expected content, and text of a log never becomes markup.

use super::super::super::log::Options;
use super::super::super::outcome::Simulation;
use super::super::super::run::{self, Candidate, Plan};
use super::render;
use crate::simulate::progress::ProgressTarget;

const HOSTILE: &str = "\"><script>alert(1)</script>";

/// Returns a simulation of requests from a host name that is markup. Its policy admits one request
/// per hour, and has a name that is markup too.
fn simulation() -> Simulation {
    let folder = tempfile::TempDir::new().unwrap();
    let log = folder.path().join("a.log");
    let key = HOSTILE.replace('"', "\\\"");
    let line = |minute: u32| {
        let time = format!("2015-05-17T10:{minute:02}:00Z");
        format!(
            "{{\"time\":\"{time}\",\"ip\":\"{key}\",\"uri\":\"/\",\"status\":200,\"key\":\"{key}\"}}\n"
        )
    };
    let text = format!("{}<b>no entry</b>\n", (0..3).map(line).collect::<String>());
    std::fs::write(&log, text).unwrap();
    let policy = "subjects: { key: { header: x-key } }\n\
        limits: { one: { quota: 1, window: 1h, per: key } }\n\
        rules: [{ name: all, limits: one }]\n";
    let candidate = |name: &str| Candidate {
        name: name.to_owned(),
        policy: tollgate_policy::parse("policy.yaml", policy).unwrap().policy,
        bounds: tollgate::store::memory::Bounds::default(),
    };
    let fields = super::super::super::log::FieldMap::new(["header.x-key=key"]).unwrap();
    let plan = Plan {
        inputs: vec![log.into()],
        options: Options { fields, ..Options::default() },
        policy: candidate("<i>a</i>.yaml"),
        compare: Some(candidate("b&b.yaml")),
        top: 5,
        watcher: ProgressTarget::Hidden,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(run::run(plan)).unwrap()
}

#[test]
fn nothing_of_a_log_becomes_markup() {
    let page = render(&simulation());
    assert!(!page.contains("<script"), "a script came through");
    assert!(!page.contains("<i>a</i>") && page.contains("&lt;i&gt;a&lt;/i&gt;.yaml"));
    assert!(!page.contains("<b>no entry") && page.contains("&lt;b&gt;no entry"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "the subject is shown as text");
    assert!(page.contains("b&amp;b.yaml"));
}

#[test]
fn the_page_needs_no_network_and_every_tag_is_closed() {
    let page = render(&simulation());
    for outside in ["http://", "https://", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    for tag in [
        "html", "head", "body", "main", "header", "section", "table", "thead", "tbody", "tr", "td",
        "th", "svg", "g", "ul", "li", "p", "div", "span", "small", "details",
    ] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
}

#[test]
fn every_drawing_has_a_title() {
    let page = render(&simulation());
    let charts: Vec<_> = page.split("role=\"img\"").skip(1).collect();
    assert!(charts.len() >= 5, "{} charts", charts.len());
    for chart in charts {
        let (_, after) = chart.split_once('>').unwrap();
        assert!(after.starts_with("<title>"), "{}", &after[..after.len().min(80)]);
    }
}
