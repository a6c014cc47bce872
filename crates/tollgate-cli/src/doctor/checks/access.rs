//! Whether Tollgate's user may do more than it needs.

use tollgate_backend::{ExcessPermissions, Inspection, PermissionCheck};

use super::{Finding, Level};

const CHECK: &str = "access";

const REMEDY: &str =
    "give Tollgate the user of deploy/redis-acl.txt, which can count and nothing else";

/// How many of the commands that are too many are named.
const NAMED: usize = 3;

pub(super) fn check(told: &Inspection) -> Option<Finding> {
    let excess = told.excess.as_ref()?;
    let user = told.user.as_deref();
    if excess.commands.is_empty() && !excess.foreign_keys {
        return Some(Finding::ok(CHECK, well(excess.judged)));
    }
    // Every server begins with this one.
    let is_default = user == Some("default");
    if is_default && excess.everything {
        let what = "asked as the default user, who may do everything";
        return Some(Finding::of(CHECK, Level::Advice, what, REMEDY));
    }
    let level = if is_default { Level::Advice } else { Level::Warning };
    let what = format!("the user {} may {}", user.unwrap_or("in use"), too_much(excess));
    Some(Finding::of(CHECK, level, what, REMEDY))
}

const fn well(judged: PermissionCheck) -> &'static str {
    match judged {
        PermissionCheck::AclRules => "a user who may neither administer nor reach others' keys",
        PermissionCheck::Probing => {
            "a user who may neither administer nor reach others' keys, as far as harmless commands tell"
        }
    }
}

/// What is too much, after `may`.
fn too_much(excess: &ExcessPermissions) -> String {
    let keys = "reach keys that are not Tollgate's";
    let named = excess.commands.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let commands = match excess.commands.len().saturating_sub(NAMED) {
        0 => format!("send {named}, which Tollgate never does"),
        more => format!("send {named} and {more} more that Tollgate never does"),
    };
    match (excess.commands.is_empty(), excess.foreign_keys) {
        (true, _) => keys.to_owned(),
        (false, true) => format!("{commands}, and {keys}"),
        (false, false) => commands,
    }
}
