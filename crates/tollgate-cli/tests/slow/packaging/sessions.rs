//! A test runs every command of the guide and the README from the page that shows it.

use std::fs;
use std::path::Path;

use crate::packaging::files::{root, shipped};
use crate::packaging::guide::{self, blocks};
use crate::packaging::session::Session;

/// Replacements with long deadlines, because other tests on the machine can slow down the servers.
const PATIENT_STORES: &[(&str, &str)] = &[("deadline: 15ms", "deadline: 10s")];

const PATIENT_MEMCACHED: &[(&str, &str)] = &[("{ memcached: {", "{ memcached: { deadline: 10s,")];

/// Replacements in nginx's configuration. By default nginx writes to system directories, and a busy
/// machine may exceed the timeouts.
const NGINX: &[(&str, &str)] = &[
    (
        "\nhttp {",
        "\nhttp { access_log off; client_body_temp_path body; proxy_temp_path proxy;\
         fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;",
    ),
    ("timeout 100ms", "timeout 30s"),
    ("timeout    250ms", "timeout 30s"),
];

const HAPROXY: &[(&str, &str)] = &[
    ("abns@tollgate", "unix@tollgate.sock"),
    ("lua-load-per-thread", "tune.lua.session-timeout 60s\n    lua-load-per-thread"),
    ("timeout connect 100ms", "timeout connect 30s"),
    ("timeout server  250ms", "timeout server 30s"),
    ("TIMEOUT = 1000", "TIMEOUT = 30000"),
];

/// A replacement that runs the binary under test.
const BUILT: &[(&str, &str)] = &[("target/release/tollgate", "tollgate")];

/// Replacements in the commands of Envoy. Two processes of Envoy would use the same system
/// resource, and a calendar window may end between two commands.
const ENVOY: &[(&str, &str)] = &[
    ("envoy --config-path", "envoy --disable-hot-restart --config-path"),
    ("timeout: 0.02s", "timeout: 30s"),
    ("window: 1m, anchor: calendar", "window: 1d"),
    ("window: 1h, anchor: calendar", "window: 1d"),
    ("q=600;w=60", "q=600;w=86400"),
    ("q=5000;w=3600", "q=5000;w=86400"),
    ("600 per 1m", "600 per 1d"),
];

macro_rules! sessions {
    ($($test:ident: $session:expr;)*) => {
        $(
            #[test]
            fn $test() {
                $session.follow();
            }
        )*
        const SESSIONS: &[Session] = &[$($session),*];
    };
}

sessions! {
    the_readme_puts_it_in_front_of_a_service: Session::of("README.md", &["8080", "9000"])
        .in_sections(&["Put it in front of a service"]).with(BUILT);
    the_readme_checks_and_tries_a_policy: Session::of("README.md", &[])
        .in_sections(&["Write a policy", "Try a policy on yesterday's traffic"]).with(BUILT);
    the_readme_shares_limits: Session::of("README.md", &["8080", "9000", "7101", "7102", "7201", "7202"])
        .in_sections(&["Share limits between nodes"]).with(BUILT);
    the_readme_asks_from_any_stack: Session::of("README.md", &["6380", "8181", "8183"])
        .in_sections(&["Query it from any stack"]).with(BUILT);
    the_readme_looks_inside: Session::of("README.md", &["8181", "8182"])
        .in_sections(&["Look inside"]).with(BUILT);
    the_http_listener_answers: Session::of("docs/http.md", &["18080", "18182", "18183"]);
    the_redis_protocol_is_spoken: Session::of("docs/redis-protocol.md", &["6380"]);
    decisions_are_served: Session::of("docs/serve.md", &["18181", "18182", "16380"]);
    the_proxy_starts: Session::of("docs/proxy.md", &["8080", "9000"]).in_sections(&[""]);
    the_proxy_forwards: Session::of("docs/proxy.md", &["18080", "19000"])
        .in_sections(&["A session", "When the upstream fails", "`/rate_limit`", "Shutdown"]);
    logs_are_simulated: Session::of("docs/simulate.md", &[]);
    quotas_are_suggested: Session::of("docs/suggest.md", &[]);
    refusals_are_those_of_the_policy: Session::of("docs/refusals.md", &[]);
    sub_requests_are_answered: Session::of("docs/sub-requests.md", &["8081"])
        .in_sections(&["", "Request and response"]);
    nginx_asks: Session::of("docs/sub-requests.md", &["8080", "8081", "9000"])
        .in_sections(&["", "nginx"]).with(NGINX);
    haproxy_asks: Session::of("docs/sub-requests.md", &["8080", "8081", "9000"])
        .in_sections(&["", "HAProxy"]).with(HAPROXY);
    envoy_asks: Session::of("docs/envoy.md", &["8081", "9000", "10000"])
        .in_sections(&["A session"]).with(ENVOY);
    descriptors_in_json_are_answered: Session::of("docs/envoy.md", &["8181"])
        .in_sections(&["In JSON"]);
    limits_are_kept_in_redis: Session::of("docs/redis.md", &["7101", "7102", "7201", "7202", "8080", "8081", "9000"])
        .with(PATIENT_STORES);
    pairs_are_kept_in_memcached: Session::of("docs/memcached.md", &["11211", "18181"])
        .with(PATIENT_MEMCACHED);
    a_deployment_is_examined: Session::of("docs/doctor.md", &["7101"]);
    the_dashboard_is_served: Session::of("docs/dashboard.md", &["18181", "18182"]);
    spans_are_sent: Session::of("docs/traces.md", &["4318", "18181", "18182"]);
    shedding_is_switched_off: Session::of("docs/load-shedding.md", &["8080", "8182", "9000"]);
}

/// Pages with commands that other tests run. Commands that take minutes are only checked, and not
/// run.
const BY_OTHERS: [(&str, &str); 7] = [
    ("docs/migration.md", "crates/tollgate-cli/tests/slow/migration/page.rs"),
    ("docs/coming-from-envoy-ratelimit.md", "crates/tollgate-cli/tests/fast/commands/import.rs"),
    ("docs/chaos.md", "crates/tollgate-chaos/tests/slow/page.rs"),
    ("docs/benchmarks.md", "crates/tollgate-bench/tests/fast/pages.rs"),
    ("docs/load-shedding.md", "crates/tollgate-bench/tests/fast/pages.rs"),
    ("docs/module.md", "crates/tollgate-module/tests/slow/page.rs"),
    ("docs/simulation.md", "crates/tollgate-sim/tests/fast/page.rs"),
];

/// Blocks that no session runs. They build or test the project itself, as `./test` does, or contain
/// the command that `tests/fast/commands/demo.rs` runs.
const OF_THE_WHOLE: [&str; 4] = [
    "cargo build --release\n",
    "./test\n",
    "cargo run --release -- demo\n",
    "RUSTFLAGS=\"--cfg shuttle\" cargo test --profile schedules -p tollgate -p tollgate-redis --lib schedules\n",
];

#[test]
fn every_command_of_the_guide_is_run_by_a_test() {
    let mut observed = 0;
    let mut left_out = Vec::new();
    let readme = "README.md".to_owned();
    for page in pages("docs").into_iter().chain([readme]) {
        for (kind, block) in blocks(&shipped(&page)) {
            if !matches!(kind, "sh" | "console") {
                assert!(!block.lines().any(|line| line.starts_with("$ ")), "{page}: {block}");
                continue;
            }
            observed += 1;
            let by_guide = kind == "sh" && guide::PAGES.contains(&&*page);
            let by_session = SESSIONS.iter().any(|session| session.runs(&page, block));
            let is_known = by_another(&page) || OF_THE_WHOLE.contains(&block);
            if !by_guide && !by_session && !is_known {
                left_out.push(format!("{page}:\n{block}"));
            }
        }
    }
    assert!(left_out.is_empty(), "no test runs\n{}", left_out.join("\n"));
    assert!(observed > 80, "{observed} blocks are hardly the guide's");
}

/// Returns whether a test of another crate or program refers to the page.
fn by_another(page: &str) -> bool {
    let mut tests = BY_OTHERS.iter().filter(|(of, _)| *of == page);
    tests.any(|(_, test)| shipped(test).contains(page))
}

/// Returns all pages below `folder`.
fn pages(folder: &str) -> Vec<String> {
    let entries =
        fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    let paths = entries.map(|name| format!("{folder}/{}", name.to_str().unwrap()));
    let below = |path: String| match Path::new(&path).extension() {
        None => pages(&path),
        Some(extension) if extension == "md" => vec![path],
        Some(_) => Vec::new(),
    };
    paths.flat_map(below).collect()
}
