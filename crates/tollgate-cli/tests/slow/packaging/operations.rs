//! Tests of the chart and the compose file for operators: metrics, scaling, permitted connections.

use serde_json::{Value, json};

use crate::packaging::files::{root, run, shipped, yaml};
use crate::packaging::helm;

/// Returns values with all settings for operators.
fn operated() -> Value {
    json!({
        "existingSecret": "limits",
        "serviceAccount": { "annotations": { "team": "edge" } },
        "autoscaling": { "enabled": true, "maxReplicas": 4 },
        "metrics": {
            "service": { "enabled": true },
            "podMonitor": { "enabled": true, "labels": { "release": "prometheus" } },
        },
        "networkPolicy": {
            "enabled": true,
            "clients": [{ "podSelector": { "matchLabels": { "role": "gateway" } } }],
            "administrators": [{ "namespaceSelector": { "matchLabels": { "name": "monitoring" } } }],
        },
        "policy": { "store": { "redis": { "shards": { "a": { "primary": "redis://127.0.0.1:1" } } } } },
    })
}

fn manifests(values: &Value) -> Vec<Value> {
    let text = helm::template(values).unwrap_or_else(|error| panic!("{error}"));
    text.split("---\n").filter(|text| !text.trim().is_empty()).map(yaml).collect()
}

/// Returns the manifests of a kind.
fn of_kind(values: &Value, kind: &str) -> Vec<Value> {
    manifests(values).into_iter().filter(|manifest| manifest["kind"] == kind).collect()
}

/// Returns the only manifest of a kind.
fn one(values: &Value, kind: &str) -> Value {
    let [manifest] = of_kind(values, kind).try_into().unwrap_or_else(|all| panic!("{all:?}"));
    manifest
}

#[test]
fn helm_finds_no_fault_in_what_operators_use() {
    let described = helm::lint(&operated()).unwrap_or_else(|error| panic!("{error}"));
    let faults = described["messages"].as_array().unwrap().iter();
    let faults: Vec<_> = faults.filter(|fault| fault["severity"] != "INFO").collect();
    assert!(described["passed"] == true && faults.is_empty(), "{described}");
}

#[test]
fn prometheus_finds_the_metrics_port_of_every_pod() {
    let values = operated();
    let services = of_kind(&values, "Service");
    let metrics = services.iter().find(|it| it["metadata"]["name"] == "edge-tollgate-metrics");
    let spec = &metrics.expect("a Service for metrics")["spec"];
    assert_eq!(spec["clusterIP"], "None");
    assert_eq!(spec["ports"][0]["name"], "metrics");
    assert_eq!(spec["ports"][0]["targetPort"], "admin");
    let monitor = one(&values, "PodMonitor");
    assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    assert_eq!((&endpoint["port"], &endpoint["path"]), (&json!("admin"), &json!("/metrics")));
    let credentials = json!({ "name": "limits", "key": "metrics-token" });
    assert_eq!(endpoint["authorization"]["credentials"], credentials);
    let selected = &monitor["spec"]["selector"]["matchLabels"];
    let pod = &one(&values, "Deployment")["spec"]["template"];
    for (label, value) in selected.as_object().unwrap() {
        assert_eq!(pod["metadata"]["labels"][label], *value);
    }
    let least = json!({ "existingSecret": "limits" });
    for kind in ["PodMonitor", "NetworkPolicy", "HorizontalPodAutoscaler"] {
        assert!(of_kind(&least, kind).is_empty(), "{kind} is there without being asked for");
    }
}

#[test]
fn the_autoscaler_sets_the_replicas_and_the_share_of_a_node_is_that_of_the_most() {
    let values = operated();
    let scaler = one(&values, "HorizontalPodAutoscaler");
    let deployment = one(&values, "Deployment");
    assert_eq!(scaler["spec"]["scaleTargetRef"]["name"], deployment["metadata"]["name"]);
    assert_eq!(scaler["spec"]["maxReplicas"], 4);
    assert!(deployment["spec"].get("replicas").is_none(), "the autoscaler sets them");
    let policy = one(&values, "ConfigMap");
    let policy = yaml(policy["data"]["policy.yaml"].as_str().unwrap());
    assert_eq!(policy["store"]["redis"]["nodes"], 4);
    assert_eq!(of_kind(&values, "PodDisruptionBudget").len(), 1);
    let mut alone = operated();
    alone["policy"] = json!({});
    let error = helm::template(&alone).unwrap_err();
    assert!(error.contains("4 replicas would count separately in policy.store:"), "{error}");
    let mut reversed = operated();
    reversed["autoscaling"]["minReplicas"] = json!(5);
    let error = helm::template(&reversed).unwrap_err();
    assert!(error.contains("minReplicas (5) is above autoscaling.maxReplicas (4)"), "{error}");
}

#[test]
fn only_the_named_peers_reach_the_listeners_and_the_admin_port() {
    let policy = one(&operated(), "NetworkPolicy");
    let [clients, administrators] = &policy["spec"]["ingress"].as_array().unwrap()[..] else {
        panic!("{policy}");
    };
    assert_eq!(clients["ports"], json!([{ "protocol": "TCP", "port": "http" }]));
    assert_eq!(clients["from"][0]["podSelector"]["matchLabels"]["role"], "gateway");
    assert_eq!(administrators["ports"], json!([{ "protocol": "TCP", "port": "admin" }]));
    let namespace = &administrators["from"][0]["namespaceSelector"];
    assert_eq!(namespace["matchLabels"]["name"], "monitoring");
    let mut values = operated();
    values["networkPolicy"] = json!({ "enabled": true });
    let policy = one(&values, "NetworkPolicy");
    let ingress = policy["spec"]["ingress"].as_array().unwrap();
    assert_eq!(ingress.len(), 1, "nobody but the kubelet reaches the admin port: {policy}");
    assert!(ingress[0].get("from").is_none(), "every client: {policy}");
}

#[test]
fn a_chart_without_a_listener_is_refused() {
    let mut values = operated();
    values["listeners"] = json!({ "http": { "enabled": false } });
    let error = helm::template(&values).unwrap_err();
    assert!(error.contains("listeners: enable at least one"), "no ports would mean all: {error}");
    values["listeners"]["resp"] = json!({ "enabled": true });
    let policy = one(&values, "NetworkPolicy");
    let ports = &policy["spec"]["ingress"][0]["ports"];
    assert_eq!(*ports, json!([{ "protocol": "TCP", "port": "resp" }]));
}

#[test]
fn probes_and_prometheus_use_the_scheme_of_the_admin_listener() {
    let tls = || json!({ "certificate": "/tls/tls.crt", "key": "/tls/tls.key" });
    let mut values = operated();
    for (listeners, schemes) in [
        (vec![], ["HTTP", "http", "http", "kubernetes.io/h2c"]),
        (vec!["admin"], ["HTTPS", "https", "http", "kubernetes.io/h2c"]),
        (vec!["http", "grpc"], ["HTTP", "http", "https", "https"]),
    ] {
        let [probes, admin, http, grpc] = schemes;
        values["listeners"]["grpc"]["enabled"] = json!(true);
        values["metrics"]["podMonitor"]["tlsConfig"] = json!({ "serverName": "limits" });
        values["policy"]["serve"] = json!({});
        for listener in &listeners {
            values["policy"]["serve"][*listener]["tls"] = tls();
        }
        let deployment = one(&values, "Deployment");
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        for probe in ["readinessProbe", "livenessProbe"] {
            assert_eq!(container[probe]["httpGet"]["scheme"], probes, "{listeners:?}");
        }
        let endpoint = &one(&values, "PodMonitor")["spec"]["podMetricsEndpoints"][0];
        assert_eq!(endpoint["scheme"], admin, "{listeners:?}");
        assert_eq!(endpoint["tlsConfig"]["serverName"], "limits");
        let protocols: Vec<_> = of_kind(&values, "Service")
            .iter()
            .flat_map(|service| service["spec"]["ports"].as_array().unwrap().clone())
            .map(|port| (port["name"].clone(), port["appProtocol"].clone()))
            .collect();
        for (port, protocol) in [("http", http), ("grpc", grpc), ("metrics", admin)] {
            let expected = (json!(port), json!(protocol));
            assert!(protocols.contains(&expected), "{listeners:?}: {protocols:?}");
        }
    }
    values["policy"]["serve"] = json!({ "admin": { "tls": tls() } });
    values["policy"]["serve"]["admin"]["tls"]["client_ca"] = json!("/tls/ca.crt");
    let error = helm::template(&values).unwrap_err();
    assert!(error.contains("policy.serve.admin.tls.client_ca: the probes"), "{error}");
}

/// The longest time from the end of the drain time to the end of the process, in seconds: 1 s for
/// connections that are cut off, 2 s for work that continues, and 5 s for spans.
const END: u64 = 8;

/// The default of `--drain-timeout`, in seconds.
const DRAIN: u64 = 30;

#[test]
fn whoever_stops_a_node_waits_until_the_process_has_ended() {
    let mut values = operated();
    for drain in [0, 30, 3_600] {
        values["drainTimeout"] = json!(drain);
        let deployment = one(&values, "Deployment");
        let pod = &deployment["spec"]["template"]["spec"];
        let before = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64();
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(grace > before.unwrap() + drain + END, "{grace} s for {drain} s");
    }
    let seconds = |path: &str, before: &str, after: &str| -> u64 {
        let text = shipped(path);
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {path}"));
        rest.split_once(after).unwrap().0.parse().unwrap()
    };
    let compose = seconds(
        "deploy/compose/compose.yaml",
        "until the process has ended.\n  stop_grace_period: ",
        "s",
    );
    let docker = seconds("deploy/docker/Dockerfile", "`docker stop --time ", "`");
    let systemd = seconds("deploy/systemd/tollgate.service", "TimeoutStopSec=", "\n");
    for waits in [compose, docker, systemd] {
        assert!(waits > DRAIN + END, "compose {compose}, docker {docker}, systemd {systemd}");
    }
}

#[test]
fn pods_run_as_the_account_of_the_chart() {
    let account_of = |values: &Value| {
        one(values, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"].clone()
    };
    let mut values = operated();
    let account = one(&values, "ServiceAccount");
    assert_eq!(account["automountServiceAccountToken"], false);
    assert_eq!(account["metadata"]["annotations"]["team"], "edge");
    assert_eq!(account_of(&values), account["metadata"]["name"]);
    values["serviceAccount"] = json!({ "create": false, "name": "own" });
    assert!(of_kind(&values, "ServiceAccount").is_empty());
    assert_eq!(account_of(&values), "own");
}

#[test]
fn the_host_reaches_the_dashboards_of_compose_and_prometheus_scrapes_both_nodes() {
    let file = yaml(&shipped("deploy/compose/compose.yaml"));
    let services = &file["services"];
    let policy = yaml(&shipped("deploy/compose/tollgate/policy.yaml"));
    let admin = &policy["serve"]["admin"];
    assert_eq!(admin["listen"], "0.0.0.0:8182", "a port of the host needs more than loopback");
    assert_eq!(admin["tokens"]["env"], "TOLLGATE_ADMIN_TOKEN");
    assert_eq!(services["tollgate-1"]["ports"], json!(["127.0.0.1:8182:8182"]));
    assert_eq!(services["tollgate-2"]["ports"], json!(["127.0.0.1:8183:8182"]));

    let text = shipped("deploy/compose/prometheus.yaml");
    let scraped = &yaml(&text)["scrape_configs"][0];
    assert_eq!(
        scraped["static_configs"][0]["targets"],
        json!(["tollgate-1:8182", "tollgate-2:8182"])
    );
    let token = scraped["authorization"]["credentials_file"].as_str().unwrap();
    let secret = token.strip_prefix("/run/secrets/").unwrap();
    assert_eq!(file["secrets"][secret]["environment"], "TOLLGATE_ADMIN_TOKEN");
    assert_eq!(services["prometheus"]["secrets"], json!([secret]));
    let setting = |name: &str, key: &str| {
        let service = &services[name];
        service.get(key).unwrap_or_else(|| &service["<<"][key]).clone()
    };
    let networks = |name: &str| setting(name, "networks").as_array().unwrap().clone();
    for node in ["tollgate-1", "tollgate-2"] {
        assert!(setting(node, "environment")["TOLLGATE_ADMIN_TOKEN"].is_string());
        assert!(networks(node).iter().any(|network| networks("prometheus").contains(network)));
    }
    // The volumes of the container, as promtool finds them here.
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("prometheus.yaml"), text).unwrap();
    std::fs::copy(root().join("deploy/prometheus/alerts.yaml"), place("alerts.yaml")).unwrap();
    let mut check = std::process::Command::new("promtool");
    let output =
        run(check.args(["check", "config", "--syntax-only"]).arg(place("prometheus.yaml")));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_unit_opens_the_admin_listener_on_loopback() {
    let unit = shipped("deploy/systemd/tollgate.service");
    let start = unit.split_once("\nExecStart=").unwrap().1.replace("\\\n", "");
    let start = start.lines().next().unwrap();
    assert!(start.contains("--admin 127.0.0.1:8182"), "{start}");
}
