//! `tollgate tenants`, at a node and at the proxy.

use std::process::Command;

use crate::support::client::Client;
use crate::support::node::{Folder, Node};
use crate::support::world::{Proxy, policy, service};

/// Runs `tollgate tenants`, and returns what it prints, or the error.
fn tenants(admin: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    let (action, rest) = arguments.split_first().unwrap();
    command.args(["tenants", action, "--admin", &format!("http://{admin}")]).args(rest);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Returns the response to a charge by name.
fn check(node: &Node, tenant: &str) -> String {
    let body = format!(r#"{{"limits":[{{"name":"exports","subject":{{"org":"{tenant}"}}}}]}}"#);
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
    let mut client = Client::connect(node.listener("http")).unwrap();
    let end = "connection: close";
    client
        .send(format!("{head}\r\n{end}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
        .unwrap();
    String::from_utf8_lossy(&client.rest()).into_owned()
}

#[test]
fn tenants_are_set_listed_exported_imported_and_removed() {
    let node = Node::open(&policy("tenants.yaml"));
    let admin = node.listener("admin");
    let set = tenants(admin, &["set", "acme", "--plan", "pro", "--quota", "exports=77"]).unwrap();
    assert_eq!(set, "was: none\nis: acme: plan pro, exports=77\n");
    assert!(check(&node, "acme").contains("\"limit\":77"));
    assert!(check(&node, "other").contains("\"limit\":10"));
    tenants(admin, &["set", "a, b", "--plan", "free"]).unwrap();
    let listed = tenants(admin, &["list"]).unwrap();
    assert!(listed.contains("acme    pro   exports=77"), "{listed}");
    assert!(listed.contains("stored only on this node"), "{listed}");
    let wrong = tenants(admin, &["set", "acme", "--plan", "prro"]).unwrap_err();
    assert!(wrong.contains("did you mean \"pro\"?"), "{wrong}");
    let wrong = tenants(admin, &["set", "acme", "--quota", "exports"]).unwrap_err();
    assert!(wrong.contains("LIMIT=QUOTA"), "{wrong}");

    let folder = Folder::new("");
    for (format, name) in [("csv", "all.csv"), ("ndjson", "all.ndjson")] {
        let exported = tenants(admin, &["export", "--format", format]).unwrap();
        folder.write(name, &exported);
        tenants(admin, &["remove", "acme"]).unwrap();
        assert!(tenants(admin, &["get", "acme"]).unwrap_err().contains("there is no tenant"));
        let path = folder.path(name);
        let imported = tenants(admin, &["import", path.to_str().unwrap(), "--replace"]).unwrap();
        assert_eq!(imported, "2 rows imported: 1 tenants before, 2 now\n");
        assert_eq!(tenants(admin, &["get", "acme"]).unwrap(), "acme: plan pro, exports=77\n");
        assert_eq!(tenants(admin, &["get", "a, b"]).unwrap(), "a, b: plan free\n");
    }
    folder.write("wrong.csv", "tenant,plan,quotas\nacme,pro,\nother,gold,\n");
    let path = folder.path("wrong.csv");
    let wrong = tenants(admin, &["import", path.to_str().unwrap()]).unwrap_err();
    assert!(wrong.contains("line 3: the policy has no plan \"gold\""), "{wrong}");
    folder.write("wrong.txt", "");
    let path = folder.path("wrong.txt");
    assert!(tenants(admin, &["import", path.to_str().unwrap()]).unwrap_err().contains(".csv"));
    let missing = tenants(admin, &["import", "/no/such/file.csv"]).unwrap_err();
    assert!(missing.contains("/no/such/file.csv"), "{missing}");
}

#[test]
fn a_tenant_has_its_quota_at_the_proxy() {
    let upstream = format!("http://{}", service());
    let flags = ["--admin", "127.0.0.1:0"];
    let mut proxy = Proxy::spawn_with("127.0.0.1:0", &upstream, &policy("tenants.yaml"), &flags);
    let line = proxy.wait_for_log("admin at ");
    let admin = line.rsplit(' ').next().unwrap().trim().to_owned();
    proxy.listens();
    let quota = || {
        let answer = proxy.get("/", &["x-org: acme"]);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.field("ratelimit-policy").to_owned()
    };
    assert!(quota().contains("\"requests\";q=30;w=60"));
    tenants(&admin, &["set", "acme", "--plan", "pro"]).unwrap();
    assert!(quota().contains("\"requests\";q=6000;w=60"));
    tenants(&admin, &["set", "acme", "--plan", "pro", "--quota", "requests=500"]).unwrap();
    assert!(quota().contains("\"requests\";q=500;w=60"));
    tenants(&admin, &["remove", "acme"]).unwrap();
    assert!(quota().contains("\"requests\";q=30;w=60"));
}
