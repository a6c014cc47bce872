//! Serves `POST /v1/check` without the HTTP library, if the request has the form that nearly all
//! requests have.
//!
//! If a request has a header field that could change the response, this module either reads the
//! field or passes the connection on to hyper. The response to a request therefore does not depend
//! on whether this module or hyper serves the request.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use tollgate::model::{Store, Timestamp};

use super::app::App;
use super::auth::token_of;
use super::body::{MAX_BODY_BYTES, is_json};
use super::prefer::Detail;
use super::problem::Problem;
use super::respond;
use crate::access::Access;
use crate::http_connection::{DirectRead, DirectService};

/// The start of every request that this module reads.
const START: &[u8] = b"POST /v1/check HTTP/1.1\r\n";

/// The most header fields of a request that this module reads.
const MAX_FIELDS: usize = 16;

/// The most digits of a `Content-Length` that this module parses. A request with more digits goes
/// to hyper.
const MAX_LENGTH_DIGITS: usize = 6;

/// The longest time for which the decisions on requests that arrived together use the same reading
/// of the clock.
const CLOCK_READING: Duration = Duration::from_millis(1);

/// The service that answers `POST /v1/check` on one connection without hyper.
pub(super) struct DirectChecks<S> {
    app: Arc<App<S>>,
    /// The last host that was allowed, so requests with the same host need no further check.
    host: Vec<u8>,
    body: Vec<u8>,
    clock: Option<Clock>,
    date: Date,
}

/// A request: the range of its body, and the detail of its response.
pub(super) struct DirectCheck {
    body: Range<usize>,
    detail: Detail,
}

/// A reading of the clock: the time for decisions, the instant at which it was read, and the
/// instant at which the last decision ended.
#[derive(Clone, Copy)]
struct Clock {
    now: Timestamp,
    read_at: Instant,
    last: Instant,
}

/// The value of the `date` field, which changes once a second.
#[derive(Default)]
struct Date {
    second: u64,
    text: String,
}

impl<S: Store + 'static> DirectChecks<S> {
    /// Creates the service for a connection. Returns `None` if requests are traced, because a span
    /// needs more parts of a request than this module reads.
    pub(super) fn new(app: &Arc<App<S>>) -> Option<Self> {
        let is_traced = app.limiter.tracer().is_on();
        (!is_traced).then(|| Self {
            app: Arc::clone(app),
            host: Vec::new(),
            body: Vec::new(),
            clock: None,
            date: Date::default(),
        })
    }

    /// Reads the fields of a request. Returns the length of the request's body and the detail of
    /// the response, or `None` if a field is unknown, repeated or refused, so hyper has to read the
    /// request.
    fn fields(&mut self, fields: &[httparse::Header<'_>]) -> Option<(usize, Detail)> {
        let (mut host, mut length, mut media_type, mut token) = (None, None, None, None);
        let mut detail = Detail::Full;
        for httparse::Header { name, value } in fields {
            let name = name.as_bytes();
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            let before = match name.len() {
                4 if is("host") => host.replace(*value),
                12 if is("content-type") => media_type.replace(*value),
                13 if is("authorization") => token.replace(*value),
                14 if is("content-length") => length.replace(*value),
                6 if is("prefer") && *value == b"return=minimal" => {
                    detail = Detail::Minimal;
                    None
                }
                6 if is("accept") => None,
                10 if is("user-agent") => None,
                10 if is("connection") && value.eq_ignore_ascii_case(b"keep-alive") => None,
                15 if is("accept-encoding") || is("accept-language") => None,
                _ => return None,
            };
            if before.is_some() {
                return None;
            }
        }
        if !is_json(media_type?) || !self.admits(token) || !self.knows(host?) {
            return None;
        }
        let length = length_of(length?).filter(|length| *length <= MAX_BODY_BYTES)?;
        Some((length, detail))
    }

    fn admits(&self, authorization: Option<&[u8]>) -> bool {
        match &self.app.options.access {
            Access::Open => true,
            access @ Access::Tokens(_) => access.admits(authorization.and_then(token_of)),
        }
    }

    fn knows(&mut self, host: &[u8]) -> bool {
        let Some(hosts) = &self.app.options.hosts else { return true };
        if self.host == host && !host.is_empty() {
            return true;
        }
        let is_known = hosts.allow(host);
        if is_known {
            self.host.clear();
            self.host.extend_from_slice(host);
        }
        is_known
    }

    /// Returns the time of the next decision. `is_first` is true for the first of several requests
    /// that arrived together, for which the clock is read. The other requests share this reading,
    /// as long as the previous decision ended less than [`CLOCK_READING`] after the reading.
    fn clock(&mut self, is_first: bool) -> Clock {
        match self.clock {
            Some(clock) if !is_first && clock.last - clock.read_at < CLOCK_READING => clock,
            _ => {
                let read_at = Instant::now();
                Clock { now: self.app.limiter.now(), read_at, last: read_at }
            }
        }
    }
}

impl<S: Store + 'static> DirectService for DirectChecks<S> {
    type Request = DirectCheck;

    fn read(&mut self, bytes: &[u8]) -> DirectRead<DirectCheck> {
        let Some(after) = bytes.strip_prefix(START) else {
            let is_start = START.starts_with(bytes);
            return if is_start { DirectRead::Partial } else { DirectRead::Other };
        };
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let (head, fields) = match httparse::parse_headers(after, &mut fields) {
            Ok(httparse::Status::Complete(parsed)) => parsed,
            Ok(httparse::Status::Partial) => return DirectRead::Partial,
            Err(_) => return DirectRead::Other,
        };
        let Some((length, detail)) = self.fields(fields) else { return DirectRead::Other };
        let body = START.len() + head..START.len() + head + length;
        if body.end > bytes.len() {
            return DirectRead::Partial;
        }
        DirectRead::Request(DirectCheck { body: body.clone(), detail }, body.end)
    }

    async fn answer(
        &mut self,
        DirectCheck { body, detail }: DirectCheck,
        bytes: &[u8],
        is_first: bool,
        out: &mut Vec<u8>,
    ) {
        let clock = self.clock(is_first);
        self.body.clear();
        let body = &bytes[body];
        let answered = self.app.check_at(clock.now, body, detail, &mut self.body).await;
        let last = Instant::now();
        if answered.is_ok() {
            self.app.options.latency.observe(last - clock.last);
        }
        self.clock = Some(Clock { last, ..clock });
        self.date.set(clock.now);
        match answered {
            Ok(()) => {
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n");
                self.date.end_head(self.body.len(), out);
                out.extend_from_slice(&self.body);
            }
            Err(problem) => refuse(&problem, &self.date, out),
        }
    }
}

/// Appends the response with the problem to `out`.
fn refuse(problem: &Problem, date: &Date, out: &mut Vec<u8>) {
    let (head, body) = (respond::refuse(problem).into_parts().0, problem.body());
    let reason = head.status.canonical_reason().unwrap_or_default();
    for part in ["HTTP/1.1 ", head.status.as_str(), " ", reason, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    for (name, value) in &head.headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    date.end_head(body.len(), out);
    out.extend_from_slice(&body);
}

impl Date {
    fn set(&mut self, now: Timestamp) {
        let second = now.as_millis() / 1_000;
        if second != self.second || self.text.is_empty() {
            self.second = second;
            self.text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
        }
    }

    /// Appends the fields `content-length` and `date`, and the end of the head.
    fn end_head(&self, length: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        for part in ["\r\ndate: ", &self.text, "\r\n\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }
}

fn length_of(value: &[u8]) -> Option<usize> {
    let is_number =
        (1..=MAX_LENGTH_DIGITS).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let digits = value.iter().map(|digit| usize::from(digit - b'0'));
    is_number.then(|| digits.fold(0, |number, digit| number * 10 + digit))
}
