//! Checks that the user with which Tollgate connects has no unnecessary permissions.

use tollgate_backend::{ExcessPermissions, Inspection, PermissionCheck};

use super::{Finding, Level};

const CHECK: &str = "access";

const REMEDY: &str =
    "use the ACL user of deploy/redis-acl.txt, which has only the permissions that Tollgate needs";

/// The most unnecessary commands that a finding lists.
const NAMED: usize = 3;

pub(super) fn check(report: &Inspection) -> Option<Finding> {
    let excess = report.excess.as_ref()?;
    let user = report.user.as_deref();
    if excess.commands.is_empty() && !excess.foreign_keys {
        let message = format!("{}{}", well(excess.check), code(report.loads_code));
        return Some(Finding::ok(CHECK, message));
    }
    // Every server has this user from its first start on.
    let is_default = user == Some("default");
    if is_default && excess.everything {
        let what = "Tollgate uses the default user, which may do everything";
        return Some(Finding::of(CHECK, Level::Advice, what, REMEDY));
    }
    let level = if is_default { Level::Advice } else { Level::Warning };
    let what = format!("the user {} may {}", user.unwrap_or("in use"), too_much(excess));
    Some(Finding::of(CHECK, level, what, REMEDY))
}

const fn well(check: PermissionCheck) -> &'static str {
    match check {
        PermissionCheck::AclRules => {
            "a user that may neither administer the server nor access foreign keys"
        }
        PermissionCheck::Probing => {
            "a user that may neither administer the server nor access foreign keys, as far as read-only commands show"
        }
    }
}

/// Describes whether the user may load functions and scripts, which distinguishes the two users in
/// `deploy/redis-acl.txt`. Returns an empty text if this is unknown.
const fn code(loads_code: Option<bool>) -> &'static str {
    match loads_code {
        None => "",
        Some(true) => "; it may load functions and scripts",
        Some(false) => {
            "; it may not load code: an administrator loads the library that `tollgate shards \
             --library` prints"
        }
    }
}

/// Describes unnecessary permissions, as the continuation of a sentence after `may`.
fn too_much(excess: &ExcessPermissions) -> String {
    let keys = "access keys that are not Tollgate's";
    let named = excess.commands.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let commands = match excess.commands.len().saturating_sub(NAMED) {
        0 => format!("run {named}, which Tollgate never does"),
        more => format!("run {named} and {more} more commands, which Tollgate never does"),
    };
    match (excess.commands.is_empty(), excess.foreign_keys) {
        (true, _) => keys.to_owned(),
        (false, true) => format!("{commands}, and {keys}"),
        (false, false) => commands,
    }
}
