//! Parses the HTTP/1.1 responses of the contenders.

use super::{Answer, Decision, Unreadable};

pub(super) fn read(bytes: &[u8], admitted: &str) -> Result<Option<Answer>, Unreadable> {
    let Some(head) = find(bytes, b"\r\n\r\n").map(|at| at + 4) else { return Ok(None) };
    let unreadable = || Unreadable::of(bytes);
    let text = std::str::from_utf8(&bytes[..head]).map_err(|_| unreadable())?;
    if !text.starts_with("HTTP/1.1 200 ") {
        return Err(unreadable());
    }
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = head + length.ok_or_else(unreadable)?;
    let Some(body) = bytes.get(head..length) else { return Ok(None) };
    Ok(Some(Answer { length, ..read_body(body, admitted) }))
}

/// Parses the body of a response. The request is admitted if the body contains the text `admitted`.
pub(super) fn read_body(body: &[u8], admitted: &str) -> Answer {
    let is_admitted = find(body, admitted.as_bytes()).is_some();
    let decision = if is_admitted { Decision::Admitted } else { Decision::Refused };
    Answer { length: body.len(), decision }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_its_body() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ntrueHTTP/1.1";
        let whole = Answer { length: answer.len() - 8, decision: Decision::Admitted };
        assert_eq!(read(answer, "true").unwrap(), Some(whole));
        let refused = Answer { decision: Decision::Refused, ..whole };
        assert_eq!(read(answer, "false").unwrap(), Some(refused));
        assert_eq!(read(&answer[..whole.length - 1], "true").unwrap(), None);
        assert!(read(b"HTTP/1.1 429 Too Many Requests\r\n\r\n", "true").is_err());
    }
}
