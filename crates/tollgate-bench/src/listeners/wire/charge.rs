//! The command `TG.CHARGE` of the Redis protocol, which charges a limit of the policy by its name.

use super::{Answer, Decision, Unreadable};

/// The largest number of items in a reply, including nested items.
const ITEMS: usize = 1_000;

/// The name of the subject that the limit counts.
pub const DIMENSION: &str = "tenant";

pub(super) fn write(limit: &str, subject: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"*5\r\n");
    for word in ["TG.CHARGE", limit, "1", DIMENSION, subject] {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// Parses a reply, which is a list of names and values in turns. The first value is the decision.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Answer>, Unreadable> {
    const BEGIN: &[u8] = b"*10\r\n$8\r\nadmitted\r\n:";
    let start = &bytes[..bytes.len().min(BEGIN.len())];
    if !BEGIN.starts_with(start) {
        return Err(Unreadable::of(bytes));
    }
    let Some(length) = length(bytes) else { return Ok(None) };
    let decision = if bytes[BEGIN.len()] == b'1' { Decision::Admitted } else { Decision::Refused };
    Ok(Some(Answer { length, decision }))
}

/// Returns the length in bytes of the reply at the start of `bytes`. Returns `None` while the reply
/// is incomplete.
fn length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut left) = (0, 1_usize);
    while left > 0 {
        let line = bytes.get(at..)?;
        let end = line.windows(2).position(|two| two == b"\r\n")?;
        let number = std::str::from_utf8(&line[1..end]).ok().and_then(|text| text.parse().ok());
        at += end + 2;
        left -= 1;
        match (line[0], number) {
            (b'*', Some(items @ 0..)) => left = ITEMS.min(left + items as usize),
            (b'$', Some(length @ 0..)) => at += length as usize + 2,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_ends_with_the_last_item_within_it() {
        let reply = b"*10\r\n$8\r\nadmitted\r\n:1\r\n$14\r\nretry_after_ms\r\n$-1\r\n$6\r\nsource\r\n\
            $5\r\nstore\r\n$7\r\nreceipt\r\n$2\r\n\r\n\r\n$8\r\nstatuses\r\n*1\r\n*2\r\n$4\r\nused\r\n:3\r\n";
        let whole = Answer { length: reply.len(), decision: Decision::Admitted };
        let twice = [&reply[..], reply].concat();
        assert_eq!(read(&twice).unwrap(), Some(whole));
        for cut in 0..reply.len() {
            assert_eq!(read(&reply[..cut]).unwrap(), None, "{cut}");
        }
        let refused = String::from_utf8_lossy(reply).replacen(":1", ":0", 1);
        assert_eq!(read(refused.as_bytes()).unwrap().unwrap().decision, Decision::Refused);
        assert!(read(b"-ERR no\r\n").is_err());
    }
}
