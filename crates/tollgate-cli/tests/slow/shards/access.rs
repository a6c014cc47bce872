//! What `tollgate doctor` says of users who may do more than count, on every server.

use serde_json::Value;

use crate::kit::{Server, Version, on_every_version};
use crate::shards::doctor::doctor;
use crate::support::node::Folder;

on_every_version! {
    the_shipped_user_is_well
    whoever_may_do_more_is_told
}

async fn the_shipped_user_is_well(version: Version) {
    let server = Server::start_version(version, &[]).await;
    admit(&server, &version.shipped_user()).await;
    let (level, what) = found(&server, "tollgate:password@", "access");
    assert_eq!(level, "ok", "{what}");
    // Whoever lists subjects is told to grant this.
    server.tell(&["ACL", "SETUSER", "tollgate", "+scan"]).await;
    let (level, what) = found(&server, "tollgate:password@", "access");
    assert_eq!(level, "ok", "{what}");
}

async fn whoever_may_do_more_is_told(version: Version) {
    let server = Server::start_version(version, &[]).await;
    let default = ("advice".to_owned(), "asked as the default user, who may do everything".into());
    assert_eq!(found(&server, "", "access"), default);

    let keys = "reach keys that are not Tollgate's";
    let by_rules = version.has_functions();
    for (rules, more) in [
        ("~* &* +@all -config", &[if by_rules { "FLUSHALL" } else { "ACL USERS" }, keys][..]),
        ("~tg1:* +@all -@admin -@dangerous", &["DBSIZE"]),
        ("~tg1:* +@all -acl -config -debug", &["LASTSAVE or SHUTDOWN"]),
        ("~* -@all +exists +mget +evalsha +script|load +time +ping +role +info", &[keys]),
    ] {
        let user = [&["wide", "reset", "on", ">pw"], &words(rules)[..]].concat();
        server.tell(&[&["ACL", "SETUSER"], &user[..]].concat()).await;
        let (level, what) = found(&server, "wide:pw@", "access");
        assert_eq!(level, "warning", "{rules}: {what}");
        let is_told = |more: &&str| more.split(" or ").any(|word| what.contains(word));
        assert!(more.iter().all(is_told), "{rules}: {what}");
        assert!(what.starts_with("the user wide may "), "{what}");
    }

    // One command too many shows only where the server tells by its rules.
    admit(&server, &version.shipped_user()).await;
    server.tell(&["ACL", "SETUSER", "tollgate", "+flushall"]).await;
    let (level, what) = found(&server, "tollgate:password@", "access");
    if by_rules {
        assert_eq!(what, "the user tollgate may send FLUSHALL, which Tollgate never does");
    } else {
        assert_eq!(level, "ok");
        assert!(what.ends_with("as far as harmless commands tell"), "{what}");
    }
}

fn words(rules: &str) -> Vec<&str> {
    rules.split(' ').collect()
}

/// Lets the user in of whom these are the words.
pub(crate) async fn admit(server: &Server, user: &[String]) {
    let user: Vec<_> = user.iter().map(String::as_str).collect();
    server.tell(&[&["ACL", "SETUSER"], &user[..]].concat()).await;
}

/// What `check` finds on `server`, its level and what is so, as `user`: `NAME:PASSWORD@` or nothing.
pub(crate) fn found(server: &Server, user: &str, check: &str) -> (String, String) {
    let folder = Folder::with(&format!(
        "subjects: {{ token: {{ header: authorization }} }}\n\
         limits: {{ core: {{ quota: 9, window: 1h, per: token }} }}\n\
         rules: [ {{ limits: core }} ]\n\
         store: {{ redis: {{ shards: {{ a: {{ primary: \"{}\" }} }} }} }}\n",
        server.url().replace("://", &format!("://{user}")),
    ));
    let response = doctor(&["--policy", folder.policy().to_str().unwrap(), "--json"]);
    let response: Value = serde_json::from_slice(&response.stdout).unwrap();
    let is_meant = |finding: &&Value| finding["check"] == check;
    let finding = response["findings"].as_array().unwrap().iter().find(is_meant);
    let finding = finding.unwrap_or_else(|| panic!("{response:#}"));
    let text = |name: &str| finding[name].as_str().unwrap().to_owned();
    assert_eq!(finding["remedy"].is_null(), text("level") == "ok", "{finding:#}");
    (text("level"), text("message"))
}
