/// Returns the authority of an absolute `http` target, or `None` for every other form.
pub(crate) fn authority_of(target: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"http://";
    let (scheme, rest) = target.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let end = rest.iter().position(|byte| b"/?".contains(byte)).unwrap_or(rest.len());
    Some(&rest[..end])
}

/// Returns whether `value` is `host` or `host:port`, with a name, an IPv4 address or an IPv6
/// address in brackets. User information, lists and empty hosts are invalid.
pub fn is_host(value: &[u8]) -> bool {
    let (host, port) = split_port(value);
    let sound_host =
        match host {
            [b'[', inner @ .., b']'] => !inner.is_empty()
                && inner.iter().all(
                    |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b':' | b'.'),
                ),
            _ => {
                !host.is_empty()
                    && host.iter().all(|&byte| byte.is_ascii_alphanumeric() || is_host_sign(byte))
            }
        };
    sound_host && port.is_none_or(is_port)
}

fn is_host_sign(byte: u8) -> bool {
    matches!(byte, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'%' | b'&'..=b'+' | b';' | b'=')
}

/// Returns whether two authorities are the same host and port. An authority without a port counts
/// as one with port 80, whatever the scheme is.
pub fn same_host(one: &[u8], other: &[u8]) -> bool {
    let (one_host, one_port) = split_port(one);
    let (other_host, other_port) = split_port(other);
    one_host.eq_ignore_ascii_case(other_host)
        && one_port.unwrap_or(b"80") == other_port.unwrap_or(b"80")
}

fn split_port(value: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memrchr(b':', value) {
        // Colons inside brackets belong to the address.
        Some(colon) if !value[colon..].contains(&b']') => {
            (&value[..colon], Some(&value[colon + 1..]))
        }
        _ => (value, None),
    }
}

fn is_port(port: &[u8]) -> bool {
    str::from_utf8(port).is_ok_and(|digits| {
        digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
    })
}
