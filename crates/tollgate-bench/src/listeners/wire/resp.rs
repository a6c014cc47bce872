//! The command `THROTTLE` of the Redis protocol. Tollgate and throttlecrab-server receive the same
//! bytes.

use super::{Answer, BURST, COUNT, Decision, Unreadable};

/// The number of lines in a reply: one with the number of integers, and one for each of the five
/// integers.
const LINES: usize = 6;

pub(super) fn write(subject: &str, out: &mut Vec<u8>) {
    let (burst, count) = (BURST.to_string(), COUNT.to_string());
    out.extend_from_slice(b"*5\r\n");
    for word in ["THROTTLE", subject, &burst, &count, "3600"] {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Option<Answer>, Unreadable> {
    let start = &bytes[..bytes.len().min(b"*5\r\n:1".len())];
    if start.starts_with(b"-") || !b"*5\r\n:".starts_with(&start[..start.len().min(5)]) {
        return Err(Unreadable::of(bytes));
    }
    let mut lines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let Some((last, _)) = lines.nth(LINES - 1) else { return Ok(None) };
    let decision = if start.ends_with(b"1") { Decision::Admitted } else { Decision::Refused };
    Ok(Some(Answer { length: last + 1, decision }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_five_numbers_of_which_the_first_says_whether() {
        let replies = b"*5\r\n:1\r\n:9\r\n:8\r\n:0\r\n:0\r\n*5\r\n:0\r\n";
        let first = Answer { length: 24, decision: Decision::Admitted };
        assert_eq!(read(replies).unwrap(), Some(first));
        assert_eq!(read(&replies[24..]).unwrap(), None);
        assert_eq!(read(b"").unwrap(), None);
        assert!(read(b"-ERR no\r\n").is_err());
        assert!(read(b"+OK\r\n").is_err());
    }
}
