//! The normal form of the requested host, which policies use.

use alloc::string::String;

/// Returns the host in lower case, without a port or a trailing dot.
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
