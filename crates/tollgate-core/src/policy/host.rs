//! The host that was asked for, as policies name hosts.

use alloc::string::String;

/// The host in lower case, without a port or the dot that may end it.
pub(super) fn host_name(host: &str) -> String {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = if without_port.starts_with('[') || !without_port.contains(':') {
        without_port
    } else {
        host
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}
