//! Whether Tollgate's user may do more than it needs.

use tollgate_backend::Inspection;

use super::{Finding, Level};

const CHECK: &str = "access";

const REMEDY: &str =
    "give Tollgate the user of deploy/redis-acl.txt, which can count and nothing else";

pub(super) fn check(told: &Inspection) -> Option<Finding> {
    let user = told.user.as_deref();
    if user == Some("default") {
        let what = "asked as the default user, who may do everything";
        return Some(Finding::of(CHECK, Level::Advice, what, REMEDY));
    }
    if told.save.is_some() {
        let what = format!("the user {} may read the configuration", user.unwrap_or("in use"));
        return Some(Finding::of(CHECK, Level::Warning, what, REMEDY));
    }
    Some(Finding::ok(CHECK, "a user who may not administer"))
}
