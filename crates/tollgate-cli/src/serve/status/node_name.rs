//! The name of a node, which distinguishes it from the other nodes of a fleet.

use std::{env, fs};

/// The environment variable with the name.
const VARIABLE: &str = "TOLLGATE_NODE_NAME";

/// The most characters of a name. The rest is cut off.
const MAX_NODE_NAME: usize = 64;

/// Returns the name in `TOLLGATE_NODE_NAME`, or else the name of the host.
pub(super) fn node_name() -> String {
    // The host name of a container or a pod is the name of the container or the pod.
    let host = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let given = env::var(VARIABLE).ok().and_then(|name| printable(&name));
    given.or_else(|| printable(&host()?)).unwrap_or_else(|| "unnamed".to_owned())
}

/// Returns `name` without surrounding white space and control characters, if characters remain.
fn printable(name: &str) -> Option<String> {
    let characters = name.trim().chars().filter(|character| !character.is_control());
    let name: String = characters.take(MAX_NODE_NAME).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_length_and_no_control_characters() {
        assert_eq!(printable(" node-1\n").as_deref(), Some("node-1"));
        assert_eq!(printable("a\u{7}b").as_deref(), Some("ab"));
        assert_eq!(printable(" \n"), None);
        assert_eq!(printable(&"n".repeat(1_000)).map(|name| name.len()), Some(MAX_NODE_NAME));
        assert!(!node_name().is_empty());
    }
}
