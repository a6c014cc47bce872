use proptest::prelude::*;

use super::*;

const LIMITS: SectionLimits = SectionLimits { bytes: 1024, fields: 8, target_bytes: 128 };

/// The result of reading a whole stream.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Course {
    passed: Vec<u8>,
    heads: u64,
    last: Step,
}

/// Reads a stream in parts that end at `ends`. Upgrades are never accepted.
fn play(stream: &[u8], ends: impl IntoIterator<Item = usize>) -> Course {
    let mut framing = Framing::new(LIMITS);
    let mut passed = 0;
    let mut last = Step::Hold;
    for end in ends {
        loop {
            last = framing.step(&stream[passed..end]);
            match last {
                Step::Pass(taken) => passed += taken,
                _ => break,
            }
        }
        if last != Step::Hold {
            break;
        }
    }
    Course { passed: stream[..passed].to_vec(), heads: framing.heads(), last }
}

fn whole(stream: &[u8]) -> Course {
    play(stream, [stream.len()])
}

const SOUND: &[(&str, u64)] = &[
    ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    ("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    ("GET / HTTP/1.0\r\n\r\n", 1),
    ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 1),
    ("GET http://a:80/x?y HTTP/1.1\r\nHost: A\r\n\r\n", 1),
    ("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", 1),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        2,
    ),
    ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 2),
    (
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n\
         3;n=\"v\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nDigest: x\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        2,
    ),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 0),
];

#[test]
fn sound_streams_pass_whole() {
    for (stream, heads) in SOUND {
        let course = whole(stream.as_bytes());
        assert_eq!(course.last, Step::Hold, "{stream:?}");
        assert_eq!(course.passed, stream.as_bytes(), "{stream:?}");
        assert_eq!(course.heads, *heads, "{stream:?}");
    }
}

#[rustfmt::skip]
const UNSOUND_HEADS: &[(&str, Violation)] = &[
    ("GET / HTTP/1.1\nHost: a\r\n\r\n", Violation::BareLineFeed),
    ("GET / HTTP/1.1\rHost: a\r\n\r\n", Violation::BareCarriageReturn),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", Violation::ControlByte),
    ("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Violation::EmptyRequestLine),
    ("GET /\r\nHost: a\r\n\r\n", Violation::RequestLine),
    ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", Violation::RequestLine),
    ("G(T / HTTP/1.1\r\nHost: a\r\n\r\n", Violation::Method),
    ("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", Violation::Connect),
    ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", Violation::Target),
    ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", Violation::Target),
    ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", Violation::Target),
    ("GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", Violation::Target),
    ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", Violation::Target),
    ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", Violation::Version),
    ("GET / http/1.1\r\nHost: a\r\n\r\n", Violation::RequestLine),
    ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Violation::FieldName),
    ("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", Violation::ObsoleteFold),
    ("GET / HTTP/1.1\r\n Host: a\r\n\r\n", Violation::ObsoleteFold),
    ("GET / HTTP/1.1\r\n\r\n", Violation::HostMissing),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", Violation::HostRepeated),
    ("GET / HTTP/1.1\r\nHost:\r\n\r\n", Violation::HostMalformed),
    ("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", Violation::HostMalformed),
    ("GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n", Violation::HostMalformed),
    ("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", Violation::HostMismatch),
    ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\na", Violation::ContentLength),
    ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n", Violation::ContentLength),
    ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", Violation::ContentLength),
    ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", Violation::ContentLengthRepeated),
    ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", Violation::LengthAndTransferEncoding),
    ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", Violation::TransferEncoding),
    ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:  chunked\r\n\r\n", Violation::TransferEncoding),
    ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked \r\n\r\n", Violation::TransferEncoding),
    ("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Violation::TransferEncodingInOldVersion),
];

#[test]
fn unsound_heads_are_refused_and_nothing_of_them_passes() {
    for (stream, violation) in UNSOUND_HEADS {
        let course = whole(stream.as_bytes());
        assert_eq!(course.last, Step::RefuseHead(*violation), "{stream:?}");
        assert_eq!(course.heads, 0, "{stream:?}");
        assert!(course.passed.iter().all(|byte| b"\r\n".contains(byte)), "{stream:?}");
    }
}

const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

#[rustfmt::skip]
const UNSOUND_CHUNKS: &[(&str, Violation)] = &[
    ("-1\r\n", Violation::ChunkSize),
    ("0x1\r\na\r\n0\r\n\r\n", Violation::ChunkSize),
    ("1 \r\na\r\n0\r\n\r\n", Violation::ChunkSize),
    (" 1\r\na\r\n0\r\n\r\n", Violation::ChunkSize),
    ("\r\n", Violation::ChunkSize),
    ("1000000000000000\r\n", Violation::ChunkSize),
    ("1\na\r\n0\r\n\r\n", Violation::BareLineFeed),
    ("1;a\rb\r\na\r\n0\r\n\r\n", Violation::ChunkSize),
    ("1\r\nab\r\n0\r\n\r\n", Violation::ChunkEnd),
    ("1\r\na\n0\r\n\r\n", Violation::ChunkEnd),
    ("0\r\nA: b\n\r\n", Violation::BareLineFeed),
    ("0\r\nA : b\r\n\r\n", Violation::FieldName),
    ("0\r\nContent-Length: 1\r\n\r\n", Violation::TrailerField),
];

#[test]
fn unsound_chunks_are_refused_after_their_head() {
    for (body, violation) in UNSOUND_CHUNKS {
        let course = whole(format!("{CHUNKED}{body}").as_bytes());
        assert_eq!(course.last, Step::RefuseBody(*violation), "{body:?}");
        assert_eq!(course.heads, 1, "{body:?}");
    }
}

#[test]
fn sections_that_never_end_are_refused_at_their_limit() {
    let long_target = format!("GET /{}", "a".repeat(LIMITS.target_bytes + 80));
    assert_eq!(whole(long_target.as_bytes()).last, Step::RefuseHead(Violation::TargetTooLong));
    let line_too_long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(128));
    assert_eq!(whole(line_too_long.as_bytes()).last, Step::RefuseHead(Violation::TargetTooLong));
    let long_value = format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(LIMITS.bytes));
    assert_eq!(whole(long_value.as_bytes()).last, Step::RefuseHead(Violation::SectionTooLarge));
    let many = format!("GET / HTTP/1.1\r\n{}", "X: y\r\n".repeat(LIMITS.fields + 1));
    assert_eq!(whole(many.as_bytes()).last, Step::RefuseHead(Violation::TooManyFields));
    let long_line = format!("{CHUNKED}1;{}", "a".repeat(600));
    assert_eq!(whole(long_line.as_bytes()).last, Step::RefuseBody(Violation::ChunkSize));
    let extension = format!("1;{}\r\na\r\n", "a".repeat(400));
    let extensions = format!("{CHUNKED}{}", extension.repeat(50));
    assert_eq!(whole(extensions.as_bytes()).last, Step::RefuseBody(Violation::ChunkExtensions));
}

#[test]
fn every_target_that_passes_is_a_uri_too() {
    // The framing refuses every invalid target. If only the HTTP parser refused one, the client
    // would get a response without an explanation.
    for (before, byte) in [b"/", b"?"].into_iter().flat_map(|c| (0..=0xff_u8).map(move |b| (c, b)))
    {
        let target = [b"/", before.as_slice(), &[byte], b"b"].concat();
        let stream = [b"GET ", target.as_slice(), b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
        if whole(&stream).last == Step::Hold {
            assert!(http::Uri::try_from(target.as_slice()).is_ok(), "{byte:#x}");
        }
    }
}

#[test]
fn bytes_after_an_upgrade_wait_for_the_answer() {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    let smuggled = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut framing = Framing::new(LIMITS);
    let stream = [request.as_slice(), smuggled].concat();
    assert_eq!(framing.step(&stream), Step::Pass(request.len()));
    assert_eq!(framing.step(smuggled), Step::AwaitUpgradeAnswer);
    framing.decline_upgrade();
    assert_eq!(framing.step(smuggled), Step::Pass(smuggled.len()));
    assert_eq!(framing.heads(), 2);

    let mut framing = Framing::new(LIMITS);
    framing.step(&stream);
    framing.accept_upgrade();
    assert_eq!(framing.step(b"\0\n\r"), Step::Pass(3));
}

#[test]
fn an_upgrade_in_http_1_0_is_no_upgrade() {
    let stream = b"GET / HTTP/1.0\r\nUpgrade: websocket\r\n\r\nGET / HTTP/1.0\r\n\r\n";
    assert_eq!(whole(stream).heads, 2);
}

#[test]
fn every_split_point_gives_the_same_course() {
    for stream in all_streams() {
        let expected = whole(&stream);
        for first in 0..=stream.len() {
            assert_eq!(play(&stream, [first, stream.len()]), expected, "split at {first}");
        }
        assert_eq!(play(&stream, 1..=stream.len()), expected, "byte by byte");
    }
}

fn all_streams() -> Vec<Vec<u8>> {
    let sound = SOUND.iter().map(|(stream, _)| stream.to_string());
    let heads = UNSOUND_HEADS.iter().map(|(stream, _)| stream.to_string());
    let chunks = UNSOUND_CHUNKS.iter().map(|(body, _)| format!("{CHUNKED}{body}"));
    sound.chain(heads).chain(chunks).map(String::into_bytes).collect()
}

proptest! {
    /// The streams consist of valid and invalid messages, with some bytes replaced. They are read
    /// in pieces of any size.
    #[test]
    fn reads_of_any_size_give_the_same_course(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let streams = all_streams();
        let mut stream: Vec<u8> =
            picks.iter().flat_map(|pick| pick.get(&streams).clone()).collect();
        for (place, byte) in edits {
            let at = place.index(stream.len());
            stream[at] = byte;
        }
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        ends.push(stream.len());
        ends.sort_unstable();
        prop_assert_eq!(play(&stream, ends), whole(&stream));
    }

    /// For any input, every `Pass` makes progress and stays within the available bytes.
    #[test]
    fn any_bytes_are_judged_without_panic(stream in prop::collection::vec(any::<u8>(), 0..600)) {
        let course = whole(&stream);
        prop_assert!(course.passed.len() <= stream.len());
    }
}
