//! Logs that are made to break their reader.

use tempfile::TempDir;

use crate::simulate::setup::*;

fn line(client: &str, agent: &str) -> String {
    format!(
        "{client} - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"{agent}\"\n"
    )
}

#[test]
fn malformed_lines_are_counted_and_shown_harmlessly() {
    let folder = TempDir::new().unwrap();
    let mut log = line("192.0.2.1", "a").into_bytes();
    log.extend_from_slice(b"\x1b]0;owned\x07\xff\xfe no entry\n\n");
    log.extend_from_slice(&vec![b'x'; 200_000]);
    log.extend_from_slice(b"\n{\"ts\":\n");
    log.extend_from_slice(line("192.0.2.1", "b").trim_end().as_bytes());
    let log = write(folder.path(), "hostile.log", log);
    let report = simulate_json(&["--policy", &policy("github.yaml"), &log]);
    assert_eq!((&report["requests"], &report["malformed"]), (&2.into(), &3.into()));
    assert_eq!(report["malformed_examples"][0]["line"], 2);
    let table = simulate(&["--policy", &policy("github.yaml"), &log]);
    assert!(table.contains("3 malformed lines skipped"), "{table}");
    assert!(table.contains(r"\x1b]0;owned\x07\xff\xfe no entry"), "{table}");
    assert!(!table.contains('\x1b'), "an escape sequence came through");
}

#[test]
fn an_empty_log_is_a_report_of_nothing() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("r.html").display().to_string();
    let log = write(folder.path(), "empty.log", "");
    let report = simulate_json(&["--policy", &policy("github.yaml"), "--report", &page, &log]);
    assert_eq!((&report["requests"], &report["from"]), (&0.into(), &serde_json::Value::Null));
    assert!(std::fs::read_to_string(page).unwrap().ends_with("</html>\n"));
    assert!(simulate(&["--policy", &policy("github.yaml"), &log]).contains("0 requests"));
}

#[test]
fn clients_by_host_name_are_distinguished() {
    let folder = TempDir::new().unwrap();
    let log: String = (0..60)
        .flat_map(|_| ["a.example.com", "b.example.com"])
        .map(|name| line(name, "x"))
        .collect();
    let log = write(folder.path(), "names.log", log);
    let report = simulate_json(&["--policy", &policy("github.yaml"), &log]);
    assert_eq!((&report["refused"], &report["host_names"]), (&0.into(), &120.into()));
    assert_eq!(report["limits"]["anonymous"]["subjects"], 2);
    let clients: Vec<_> =
        report["subjects"].as_array().unwrap().iter().map(|subject| &subject["client"]).collect();
    assert!(clients.contains(&&"a.example.com".into()), "{clients:?}");
}

#[test]
fn a_subject_that_is_markup_stays_text() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("r.html").display().to_string();
    let log = write(folder.path(), "markup.log", line("<script>alert(1)</script>", "x").repeat(70));
    simulate(&["--policy", &policy("github.yaml"), "--report", &page, &log]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(!page.contains("<script"));
    assert!(page.contains("from &lt;script&gt;alert(1)&lt;/script&gt;"));
}
