//! Compares the framing of HTTP/1 at the proxy with a second parser of the same bytes.

#[path = "../../crates/tollgate-http/src/framing/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod framing;

use framing::{Framing, SectionLimits, Step};

const LIMITS: SectionLimits = SectionLimits { bytes: 4096, fields: 32, target_bytes: 1024 };

/// The result for a whole stream.
#[derive(Debug, PartialEq, Eq)]
struct Course {
    passed: usize,
    heads: u64,
    last: Step,
}

/// A stream gives the same result however it is split, and a second parser finds the same messages
/// in the bytes that pass.
pub fn check(data: &[u8]) {
    let Some((stream, place)) = crate::cut(data) else { return };
    let (course, heads) = run(stream, &[stream.len()]);
    assert_eq!(run(stream, &[place, stream.len()]).0, course, "split at {place}");
    if stream.starts_with(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") {
        return;
    }
    // An upgrade would need the upstream's answer, so the stream stops there.
    assert_eq!(heads_by_second_reading(&stream[..course.passed], heads.len()), heads);
}

/// Reads a stream in parts that end at `ends`. Also returns the position of each head.
fn run(stream: &[u8], ends: &[usize]) -> (Course, Vec<usize>) {
    let mut framing = Framing::new(LIMITS);
    let (mut passed, mut last, mut heads) = (0, Step::Hold, Vec::new());
    for &end in ends {
        loop {
            let before = framing.heads();
            last = framing.step(&stream[passed..end]);
            let Step::Pass(taken) = last else { break };
            assert!(taken > 0 && passed + taken <= end);
            if framing.heads() > before {
                heads.push(passed);
            }
            passed += taken;
            if passed == end {
                last = Step::Hold;
                break;
            }
        }
        if last != Step::Hold {
            break;
        }
    }
    (Course { passed, heads: framing.heads(), last }, heads)
}

/// Returns the positions of the first `count` heads, computed by `httparse` and plain arithmetic.
fn heads_by_second_reading(stream: &[u8], count: usize) -> Vec<usize> {
    let (mut at, mut heads) = (0, Vec::new());
    while heads.len() < count {
        if stream[at..].starts_with(b"\r\n") {
            at += 2;
        }
        heads.push(at);
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut fields);
        let Ok(httparse::Status::Complete(length)) = request.parse(&stream[at..]) else {
            panic!("a head passed that a second parser does not accept, at {at}")
        };
        at += length;
        let value = |name: &str| {
            let mut found = request.headers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
            let value = found.next().map(|it| it.value);
            assert!(found.next().is_none(), "{name} passed twice");
            value
        };
        match (value("content-length"), value("transfer-encoding")) {
            (None, None) => {}
            (Some(length), None) => {
                let length = std::str::from_utf8(length).unwrap().trim().parse::<usize>().unwrap();
                at = at.saturating_add(length);
            }
            (None, Some(coding)) => {
                assert!(coding.trim_ascii().eq_ignore_ascii_case(b"chunked"));
                match end_of_chunks(stream, at) {
                    Some(end) => at = end,
                    None => break,
                }
            }
            (Some(_), Some(_)) => panic!("a length and a coding passed together"),
        }
        if at > stream.len() {
            break;
        }
    }
    heads
}

fn end_of_chunks(stream: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = stream.get(at..)?;
        let (line, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return None,
            Err(error) => {
                // Incomplete lines may look wrong to the second parser before their end.
                assert!(!rest.contains(&b'\n'), "{error}: a size line passed, at {at}");
                return None;
            }
        };
        at += line;
        if size == 0 {
            break;
        }
        at = at.checked_add(usize::try_from(size).ok()?)?.checked_add(2)?;
    }
    loop {
        let end = memchr::memmem::find(stream.get(at..)?, b"\r\n")?;
        at += end + 2;
        if end == 0 {
            return Some(at);
        }
    }
}
