//! Sources and formats of logs.

use tempfile::TempDir;

use crate::simulate::setup::*;

#[test]
fn standard_input_gzip_and_many_files_report_the_same() {
    let folder = TempDir::new().unwrap();
    let text = std::fs::read(shipped_log()).unwrap();
    let packed = gzip(&text);
    let github = policy("github.yaml");
    let whole = simulate_json(&["--policy", &github, &shipped_log()]);
    let from_file =
        simulate_json(&["--policy", &github, &write(folder.path(), "a.log.gz", &packed)]);
    let from_stdin = json(&simulate_with(&["--json", "--policy", &github, "-"], &text));
    let packed_stdin = json(&simulate_with(&["--json", "--policy", &github, "-"], &packed));

    // Distributes lines over two files: each is out of order, and their times overlap.
    let lines: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let (one, other): (Vec<_>, Vec<_>) =
        lines.chunks(700).enumerate().partition(|(index, _)| index % 2 == 0);
    let join = |chunks: Vec<(usize, &[&[u8]])>| {
        chunks.iter().map(|(_, lines)| lines.concat()).collect::<Vec<_>>().concat()
    };
    let one = write(folder.path(), "one.log", join(one));
    let other = write(folder.path(), "other.log", join(other));
    let from_two = simulate_json(&["--policy", &github, &one, &other]);

    for (name, report) in [
        ("gzip", from_file),
        ("stdin", from_stdin),
        ("packed stdin", packed_stdin),
        ("two files", from_two),
    ] {
        assert_eq!(report["late"], 0, "{name}");
        for count in ["requests", "admitted", "refused", "refunded", "malformed", "over_time"] {
            assert_eq!(report[count], whole[count], "{name}: {count}");
        }
    }
}

#[test]
fn json_lines_with_a_map_of_fields() {
    let folder = TempDir::new().unwrap();
    let line = |second: u32, key: &str| {
        format!(
            "{{\"when\":14318571{second:02}.5,\"who\":{{\"ip\":\"192.0.2.1\"}},\"uri\":\"/search/x\",\"key\":\"{key}\"}}\n"
        )
    };
    let log: String = (0..40)
        .map(|second| line(second, "Bearer a"))
        .chain((0..40).map(|second| line(second, "")))
        .collect();
    let log = write(folder.path(), "app.json", log);
    let fields = [
        "--field",
        "time=when",
        "--field",
        "address=who.ip",
        "--field",
        "header.authorization=key",
    ];
    let report = simulate_json(
        &[&["--policy", &policy("github.yaml"), "--format", "json"], &fields[..], &[&log]].concat(),
    );
    assert_eq!(report["requests"], 80);
    assert_eq!(report["limits"]["search"]["refused"], 10);
    assert_eq!(report["limits"]["anonymous"]["requests"], 40);
    let token = report["subjects"][0]["subject"].as_str().unwrap();
    assert!(token.starts_with("token=#") && !token.contains("Bearer"), "{token}");
}

#[test]
fn leases_are_held_for_the_durations_that_the_log_reports() {
    let folder = TempDir::new().unwrap();
    let policy = write(
        folder.path(),
        "policy.yaml",
        "subjects: { address: { client_address: {} } }\n\
         limits: { running: { algorithm: concurrency, quota: 2, per: address } }\n\
         rules: [{ name: all, limits: running }]\n",
    );
    let line = |second: u32, took: &str| {
        format!("{{\"ts\":{},\"ip\":\"192.0.2.1\",\"uri\":\"/\"{took}}}\n", 1_431_857_100 + second)
    };
    let log = |took: &str| (0..6).map(|second| line(second, took)).collect::<String>();
    let known = write(folder.path(), "known", log(",\"took\":3"));
    let report = simulate_json(&["--policy", &policy, "--field", "duration_s=took", &known]);
    assert_eq!(
        (&report["admitted"], &report["refused"]),
        (&4.into(), &2.into()),
        "two of each three seconds"
    );
    let unknown = write(folder.path(), "unknown", log(""));
    assert_eq!(simulate_json(&["--policy", &policy, &unknown])["refused"], 0);
    let table = simulate(&["--policy", &policy, &unknown]);
    assert!(table.contains("the log has no durations"), "{table}");
}

#[test]
fn what_answers_cost_is_settled_by_their_sizes_and_times_in_the_log() {
    let folder = TempDir::new().unwrap();
    let policy = |meter: &str| {
        let text = format!(
            "subjects: {{ address: {{ client_address: {{}} }} }}\n\
             limits: {{ metered: {{ quota: 10, window: 1h, per: address, cost: {{ {meter} }} }} }}\n\
             rules: [{{ name: all, limits: metered }}]\n\
             answers: {{ refund: {{ status: [304] }} }}\n"
        );
        write(folder.path(), &format!("{}.yaml", &meter[..9]), text)
    };
    let line = |second: u32, status: u16| {
        let answer = format!("\"status\":{status},\"size\":3072,\"took\":3");
        let ts = 1_431_857_100 + second;
        format!("{{\"ts\":{ts},\"ip\":\"192.0.2.1\",\"uri\":\"/\",{answer}}}\n")
    };
    let lines: String =
        (0..8).map(|second| line(second, [200, 304][second as usize % 2])).collect();
    let log = write(folder.path(), "log", lines);
    let fields = ["--field", "duration_s=took", "--field", "bytes=size"];
    for (meter, admitted, is_told) in [
        // Three units each, except for 304: after three, one unit is left, and nothing more is
        // reserved.
        ("from_size: 1KiB, reserve: 2", 5, true),
        ("from_time: 1s, reserve: 2", 5, true),
        // The log does not contain the cost: two units each, and all four requests fit.
        ("from_header: x-cost, reserve: 2", 8, false),
    ] {
        let policy = policy(meter);
        let report = simulate_json(&[&["--policy", &policy][..], &fields, &[&log]].concat());
        assert_eq!(report["admitted"], admitted, "{meter}: {report}");
        assert_eq!(report["costs_unknown"], !is_told, "{meter}");
    }
    let table = simulate(&["--policy", &policy("from_time: 1s"), &log]);
    assert!(table.contains("their reservations count instead"), "{table}");
}

/// The bug: a response without a body was charged the reserved units.
#[test]
fn a_response_of_no_bytes_was_charged_its_reservation() {
    let folder = TempDir::new().unwrap();
    let policy = write(
        folder.path(),
        "policy.yaml",
        "subjects: { address: { client_address: {} } }\n\
         limits: { metered: { quota: 3, window: 1h, per: address, cost: { from_size: 1KiB, reserve: 3 } } }\n\
         rules: [{ name: all, limits: metered }]\n",
    );
    let common = |size: &str| {
        let line = |second: u32| {
            format!("192.0.2.1 - - [17/May/2015:10:05:0{second} +0000] \"GET /\" 304 {size}\n")
        };
        (0..4).map(line).collect::<String>()
    };
    let object = |size: &str| {
        let line = |second: u32| {
            let ts = 1_431_857_100 + second;
            format!("{{\"ts\":{ts},\"ip\":\"192.0.2.1\",\"uri\":\"/\"{size}}}\n")
        };
        (0..4).map(line).collect::<String>()
    };
    for (log, admitted, is_unknown) in [
        (common("-"), 4, false),
        (common("0"), 4, false),
        (object(",\"size\":0"), 4, false),
        // The log does not contain the size, so the reserved units are the cost.
        (object(""), 1, true),
    ] {
        let log = write(folder.path(), "log", log);
        let report = simulate_json(&["--policy", &policy, "--field", "bytes=size", &log]);
        assert_eq!(report["admitted"], admitted, "{report}");
        assert_eq!(report["costs_unknown"], is_unknown, "{report}");
    }
}

/// The bug: the proxy answers these requests without a charge, but the simulation charged them.
#[test]
fn requests_that_the_proxy_does_not_charge_were_charged() {
    let folder = TempDir::new().unwrap();
    let text = "subjects: { address: { client_address: {} } }\n\
                limits: { all: { quota: 2, window: 1h, per: address } }\n\
                rules: [{ limits: all }]\n\
                answers: { status_path: /rate_limit, refund: { status: [304] } }\n";
    let policy = write(folder.path(), "policy.yaml", text);
    let mut lines = String::new();
    for (second, request) in ["GET /rate_limit", "GET /a%2fb", "GET /rate_limit?a=b", "GET /x/../y"]
        .into_iter()
        .chain(["GET /", "POST /rate_limit", "GET /"])
        .enumerate()
    {
        lines += &format!(
            "192.0.2.1 - - [17/May/2015:10:05:0{second} +0000] \"{request} HTTP/1.1\" 200 1\n"
        );
    }
    let log = write(folder.path(), "log", lines);
    let report = simulate_json(&["--policy", &policy, &log]);
    let counts = ["requests", "admitted", "refused", "unlimited", "ambiguous"];
    assert_eq!(counts.map(|count| report[count].as_u64().unwrap()), [7, 4, 3, 2, 2], "{report}");
    let limit = &report["limits"]["all"];
    assert_eq!((&limit["requests"], &limit["refused"]), (&3.into(), &1.into()), "{report}");
    assert_eq!(report["refunds"]["refusals_saved"], 0);
    let table = simulate(&["--policy", &policy, &log]);
    assert!(table.contains("2 of the refused requests would be answered with 400"), "{table}");
}

/// The bug: one line without a size made the report say that costs are unknown, although no metered
/// limit was charged for the request of that line.
#[test]
fn lines_without_a_size_made_costs_unknown_that_nothing_metered() {
    let folder = TempDir::new().unwrap();
    let policy = write(
        folder.path(),
        "policy.yaml",
        "subjects: { address: { client_address: {} } }\n\
         limits:\n\
         \x20 metered: { quota: 3, window: 1h, per: address, cost: { from_size: 1KiB, reserve: 3 } }\n\
         \x20 plain: { quota: 9, window: 1h, per: address }\n\
         rules:\n\
         \x20 - { name: files, match: { path: /files/** }, limits: metered }\n\
         \x20 - { name: pages, match: { path: /pages/** }, limits: plain }\n\
         answers: { refund: { status: [304] }, status_path: /limits }\n",
    );
    let line = |second: u32, path: &str, status: u16, size: &str| {
        let ts = 1_431_857_100 + second;
        format!(
            "{{\"ts\":{ts},\"ip\":\"192.0.2.1\",\"uri\":\"{path}\",\"status\":{status}{size}}}\n"
        )
    };
    let known = [
        line(0, "/pages/a", 200, ""),
        line(1, "/limits", 200, ""),
        line(2, "/files/a%2fb", 400, ""),
        // The cost of a refunded request is 0.
        line(3, "/files/a", 304, ""),
        line(4, "/files/a", 200, ",\"size\":3072"),
        // Refused: the previous request used the quota.
        line(5, "/files/a", 429, ""),
    ];
    let unknown = [line(0, "/files/a", 200, "")];
    for (lines, is_unknown) in [(&known[..], false), (&unknown[..], true)] {
        let log = write(folder.path(), "log", lines.concat());
        let report = simulate_json(&["--policy", &policy, "--field", "bytes=size", &log]);
        assert_eq!(report["costs_unknown"], is_unknown, "{report}");
    }
}

#[test]
fn what_cannot_be_used_is_reported_with_an_exit_code() {
    let (github, log) = (policy("github.yaml"), shipped_log());
    for (arguments, code, described) in [
        (vec!["--policy", &github], 2, "LOG"),
        (vec![&log], 2, "--policy"),
        (vec!["--policy", &github, "--field", "tiem=ts", &log], 2, "unknown field `tiem`"),
        (vec!["--policy", &github, "--format", "xml", &log], 2, "xml"),
        (vec!["--policy", &github, "--top", "0", &log], 2, "0"),
        (vec!["--policy", &github, "/no/such.log"], 1, "cannot open /no/such.log"),
        (vec!["--policy", "/no/such.yaml", &log], 1, "/no/such.yaml"),
        (
            vec!["--policy", &github, "--report", "/no/such/folder/r.html", &log],
            1,
            "cannot write /no/such/folder/r.html",
        ),
    ] {
        let (found, errors) = failed(&arguments);
        assert_eq!(found, code, "{arguments:?}: {errors}");
        assert!(errors.contains(described), "{arguments:?}: {errors}");
    }
}

/// The bug: `--report` overwrote a log or a policy if it named this file.
#[test]
fn a_report_does_not_replace_an_input() {
    let folder = TempDir::new().unwrap();
    let text = std::fs::read(policy("github.yaml")).unwrap();
    let own = write(folder.path(), "policy.yaml", &text);
    let other = write(folder.path(), "other.yaml", &text);
    let lines = std::fs::read(shipped_log()).unwrap();
    let log = write(folder.path(), "log", &lines);
    for (name, content) in [("policy.yaml", &text), ("other.yaml", &text), ("log", &lines)] {
        let path = folder.path().join(".").join(name);
        let report = path.display().to_string();
        let (code, errors) =
            failed(&["--policy", &own, "--compare", &other, "--report", &report, &log]);
        assert_eq!(code, 1, "{name}: {errors}");
        assert!(errors.contains("name another file with --report"), "{errors}");
        assert_eq!(&std::fs::read(&path).unwrap(), content, "{name}");
    }
}

/// The bug: `--report` overwrote a file that a policy includes.
#[test]
fn a_report_replaced_a_file_that_a_policy_includes() {
    let folder = TempDir::new().unwrap();
    let text = "limits: { all: { quota: 5, window: 60s } }";
    let limits = write(folder.path(), "limits.yaml", text);
    let policy =
        write(folder.path(), "policy.yaml", "include: limits.yaml\nrules: [{ limits: all }]\n");
    let (code, errors) = failed(&["--policy", &policy, "--report", &limits, &shipped_log()]);
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("name another file with --report"), "{errors}");
    assert_eq!(std::fs::read_to_string(&limits).unwrap(), text);
}

/// The bug: with `--report`, the policy was read twice. The second time, a pipe was empty.
#[test]
fn a_policy_from_a_pipe_was_empty_if_a_report_was_written() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("report.html").display().to_string();
    let log = shipped_log();
    let arguments = ["--json", "--policy", "/dev/stdin", "--report", &page, &log];
    // The second run replaces the report of the first run.
    for _ in 0..2 {
        let policy = b"limits: { all: { quota: 5, window: 60s } }\nrules: [{ limits: all }]\n";
        let report = json(&simulate_with(&arguments, policy));
        assert!(report["refused"].as_u64().unwrap() > 0, "{report}");
    }
}

#[test]
fn responses_are_counted_by_their_statuses_in_the_log() {
    let folder = TempDir::new().unwrap();
    let text = "subjects: { address: { client_address: {} } }\n\
                limits:\n  \
                failures: { quota: 2, window: 1h, per: address, count: { status: 401 } }\n  \
                core: { quota: 99, window: 1h, per: address }\n\
                rules: [{ name: all, limits: [failures, core] }]\n";
    let policy = write(folder.path(), "policy.yaml", text);
    let line = |second: u32, status: u16| {
        let ts = 1_431_857_100 + second;
        format!("{{\"ts\":{ts},\"ip\":\"192.0.2.1\",\"uri\":\"/\",\"status\":{status}}}\n")
    };
    let statuses = [200, 401, 200, 200, 401, 200, 401];
    let lines: String = (0..).zip(statuses).map(|(second, status)| line(second, status)).collect();
    let log = write(folder.path(), "log", lines);
    let report = simulate_json(&["--policy", &policy, &log]);
    assert_eq!((&report["admitted"], &report["refused"]), (&5.into(), &2.into()));
}
