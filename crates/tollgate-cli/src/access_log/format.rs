//! The lines of the access log and their formats.

use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, Version};
use serde_json::json;

use super::Format;
use crate::simulate::utc::Utc;

/// The text that the log shows as the reason of a refusal that no limit caused.
pub(super) const OTHER_REASON: &str = "-";

/// One request and its response. No field contains credentials.
#[derive(Debug)]
pub(super) struct Record {
    /// The time at which the request arrived, in milliseconds since the Unix epoch.
    pub(super) time: u64,
    pub(super) client: Option<IpAddr>,
    /// The request line; `None` if the head of the request was malformed.
    pub(super) request: Option<RequestLine>,
    pub(super) host: Option<HeaderValue>,
    pub(super) referer: Option<HeaderValue>,
    pub(super) user_agent: Option<HeaderValue>,
    pub(super) status: StatusCode,
    /// The number of bytes of the response body that were sent.
    pub(super) bytes: u64,
    /// The time from the arrival of the request to the end of its response.
    pub(super) duration: Duration,
    /// The limit that refused the request, or another reason for the refusal. `None` if the request
    /// was not refused.
    pub(super) refused_by: Option<String>,
}

/// The first line of a request.
#[derive(Debug)]
pub(super) struct RequestLine {
    pub(super) method: Method,
    /// The path and the query.
    pub(super) target: String,
    pub(super) version: Version,
}

impl Record {
    /// Returns the line, which ends with a line feed and contains no other line feed.
    pub(super) fn line(&self, format: Format) -> String {
        match format {
            Format::Json => self.json(),
            Format::Combined => self.combined(),
        }
    }

    fn json(&self) -> String {
        let text = |value: &Option<HeaderValue>| {
            value.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let (seconds, millis) = (self.duration.as_secs(), self.duration.subsec_millis());
        let line = json!({
            "time_iso8601": Utc::new(self.time).to_string(),
            "remote_addr": self.client.map(|client| client.to_string()),
            "request_method": self.request.as_ref().map(|line| line.method.as_str()),
            "request_uri": self.request.as_ref().map(|line| &line.target),
            "server_protocol": self.request.as_ref().map(|line| format!("{:?}", line.version)),
            "status": self.status.as_u16(),
            "body_bytes_sent": self.bytes,
            "request_time": format!("{seconds}.{millis:03}"),
            "http_host": text(&self.host),
            "http_referer": text(&self.referer),
            "http_user_agent": text(&self.user_agent),
            "refused_by": self.refused_by,
        });
        format!("{line}\n")
    }

    /// Returns the line `HOST - - [TIME] "REQUEST" STATUS BYTES "REFERER" "USER AGENT"`.
    fn combined(&self) -> String {
        let mut line = String::with_capacity(160);
        match self.client {
            Some(client) => _ = write!(line, "{client}"),
            None => line.push('-'),
        }
        let _ = write!(line, " - - [{}] \"", Utc::new(self.time).clf());
        match &self.request {
            Some(RequestLine { method, target, version }) => {
                let _ = write!(line, "{method} ");
                escape(&mut line, target.as_bytes());
                let _ = write!(line, " {version:?}");
            }
            None => line.push('-'),
        }
        let _ = write!(line, "\" {} {}", self.status.as_u16(), self.bytes);
        for value in [&self.referer, &self.user_agent] {
            line.push_str(" \"");
            escape(&mut line, value.as_ref().map_or(b"-", HeaderValue::as_bytes));
            line.push('"');
        }
        line.push('\n');
        line
    }
}

/// Appends `bytes`. Quotation marks, backslashes and everything but visible ASCII are written as
/// `\xHH`, as nginx does, so a client cannot end a field or a line.
fn escape(line: &mut String, bytes: &[u8]) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => _ = write!(line, "\\x{byte:02X}"),
            visible => line.push(char::from(*visible)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let value = |bytes| HeaderValue::from_bytes(bytes).ok();
        Record {
            time: 1_431_857_103_045,
            client: "192.0.2.7".parse().ok(),
            request: Some(RequestLine {
                method: Method::GET,
                target: "/a?b=\"c\"".to_owned(),
                version: Version::HTTP_11,
            }),
            host: value(b"example.com"),
            referer: None,
            user_agent: value(b"curl/8 \"\\\xff\t"),
            status: StatusCode::TOO_MANY_REQUESTS,
            bytes: 12,
            duration: Duration::from_millis(1_203),
            refused_by: Some("core".to_owned()),
        }
    }

    #[test]
    fn a_line_is_one_line_whatever_the_client_sent() {
        assert_eq!(
            record().line(Format::Combined),
            "192.0.2.7 - - [17/May/2015:10:05:03 +0000] \"GET /a?b=\\x22c\\x22 HTTP/1.1\" 429 12 \
             \"-\" \"curl/8 \\x22\\x5C\\xFF\\x09\"\n"
        );
        let line = record().line(Format::Json);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(object["time_iso8601"], "2015-05-17T10:05:03.045Z");
        assert_eq!((&object["request_time"], &object["status"]), (&"1.203".into(), &429.into()));
        assert_eq!(
            (&object["refused_by"], &object["http_referer"]),
            (&"core".into(), &serde_json::Value::Null)
        );
    }
}
