//! The findings of `tollgate doctor` about users with too many permissions, on every server.

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
    // Listing subjects needs this permission, which the documentation recommends.
    server.execute(&["ACL", "SETUSER", "tollgate", "+scan"]).await;
    let (level, what) = found(&server, "tollgate:password@", "access");
    assert_eq!(level, "ok", "{what}");
}

async fn whoever_may_do_more_is_told(version: Version) {
    let server = Server::start_version(version, &[]).await;
    let default =
        ("advice".to_owned(), "Tollgate uses the default user, which may do everything".into());
    assert_eq!(found(&server, "", "access"), default);

    let keys = "access keys that are not Tollgate's";
    let by_rules = version.has_functions();
    for (rules, more) in [
        ("~* &* +@all -config", &[if by_rules { "FLUSHALL" } else { "ACL USERS" }, keys][..]),
        ("~tg1:* +@all -@admin -@dangerous", &["DBSIZE"]),
        ("~tg1:* +@all -acl -config -debug", &["LASTSAVE or SHUTDOWN"]),
        ("~* -@all +exists +mget +evalsha +script|load +time +ping +role +info", &[keys]),
    ] {
        let user = [&["wide", "reset", "on", ">pw"], &words(rules)[..]].concat();
        server.execute(&[&["ACL", "SETUSER"], &user[..]].concat()).await;
        let (level, what) = found(&server, "wide:pw@", "access");
        assert_eq!(level, "warning", "{rules}: {what}");
        let is_told = |more: &&str| more.split(" or ").any(|word| what.contains(word));
        assert!(more.iter().all(is_told), "{rules}: {what}");
        assert!(what.starts_with("the user wide may "), "{what}");
    }

    // A single superfluous command is only detected if the server lists its rules.
    admit(&server, &version.shipped_user()).await;
    server.execute(&["ACL", "SETUSER", "tollgate", "+flushall"]).await;
    let (level, what) = found(&server, "tollgate:password@", "access");
    if by_rules {
        assert_eq!(what, "the user tollgate may run FLUSHALL, which Tollgate never does");
    } else {
        assert_eq!(level, "ok");
        assert!(what.contains(", as far as read-only commands show"), "{what}");
    }
}

fn words(rules: &str) -> Vec<&str> {
    rules.split(' ').collect()
}

/// Creates the user with these ACL rules.
pub(crate) async fn admit(server: &Server, user: &[String]) {
    let user: Vec<_> = user.iter().map(String::as_str).collect();
    server.execute(&[&["ACL", "SETUSER"], &user[..]].concat()).await;
}

/// Returns the level and the text of the finding of `check` on `server`. `user` is
/// `NAME:PASSWORD@`, or empty for the default user.
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
