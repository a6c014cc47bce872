//! Log lines that are JSON objects.

mod scanner;
mod text;
mod values;

use super::draft::Draft;
use super::fields::FieldMap;
use super::malformed::Malformed;
use super::time::ClfClock;
use scanner::Scanner;
use values::Values;

/// Parses one JSON object and reads the values that `fields` maps.
///
/// The object must be well-formed up to its end. Values that `fields` does not map are skipped. The
/// object must contain a time, and a client or a target, because servers mix other messages into
/// their JSON logs.
pub(super) fn parse(
    line: &[u8],
    fields: &FieldMap,
    clock: &mut ClfClock,
    draft: &mut Draft,
) -> Result<(), Malformed> {
    let mut values = Values::new(clock, draft);
    Scanner::new(line).object(|path, scalar| {
        fields.aliases(path).try_for_each(|alias| values.set(alias, scalar))
    })?;
    values.finish()
}

#[cfg(test)]
mod tests {
    use super::super::entry::Entry;
    use super::*;

    fn read(line: &str, fields: &FieldMap) -> Result<Entry, Malformed> {
        let mut draft = Draft::default();
        parse(line.as_bytes(), fields, &mut ClfClock::default(), &mut draft)?;
        draft.entry()
    }

    fn entry(line: &str) -> Entry {
        read(line, &FieldMap::default()).unwrap()
    }

    #[test]
    fn nginx() {
        let entry = entry(
            r#"{"time_iso8601":"2015-05-17T10:05:03+00:00","remote_addr":"192.0.2.7","remote_user":"","request":"GET /a?b HTTP/1.1","status":"304","body_bytes_sent":"0","request_time":"0.003","http_referer":"-","http_user_agent":"curl\/8"}"#,
        );
        assert_eq!(entry.time, 1_431_857_103_000);
        assert_eq!(entry.address(), Some("192.0.2.7".parse().unwrap()));
        assert_eq!((entry.method(), entry.target()), (Some(&b"GET"[..]), Some(&b"/a?b"[..])));
        assert_eq!((entry.status, entry.bytes, entry.duration), (304, Some(0), Some(3)));
        assert_eq!((entry.user(), entry.referer()), (None, None));
        assert_eq!(entry.user_agent(), Some(&b"curl/8"[..]));
    }

    #[test]
    fn caddy() {
        let entry = entry(
            r#"{"level":"info","ts":1646861401.5241024,"msg":"handled request","request":{"remote_ip":"192.0.2.9","remote_port":"4","client_ip":"2001:db8::1","method":"POST","host":"example.com","uri":"/x","headers":{"User-Agent":["curl/7.82.0","second"],"Accept":[]},"tls":{"resumed":false}},"user_id":"ann","duration":0.0009,"size":10900,"status":201}"#,
        );
        assert_eq!(entry.time, 1_646_861_401_524);
        assert_eq!(entry.address(), Some("2001:db8::1".parse().unwrap()));
        assert_eq!((entry.method(), entry.target()), (Some(&b"POST"[..]), Some(&b"/x"[..])));
        assert_eq!((entry.host(), entry.user()), (Some(&b"example.com"[..]), Some(&b"ann"[..])));
        assert_eq!((entry.status, entry.bytes), (201, Some(10900)));
        assert_eq!(entry.user_agent(), Some(&b"curl/7.82.0"[..]));
    }

    #[test]
    fn traefik() {
        let entry = entry(
            r#"{"ClientAddr":"192.0.2.7:5","ClientHost":"192.0.2.7","ClientUsername":"-","DownstreamContentSize":13,"DownstreamStatus":200,"Duration":2500000,"RequestHost":"h","RequestMethod":"GET","RequestPath":"/p","StartUTC":"2015-05-17T10:05:03.250111222Z","level":"info","time":"2015-05-17T10:05:09Z"}"#,
        );
        assert_eq!((entry.time, entry.duration), (1_431_857_103_250, Some(2)));
        assert_eq!((entry.client(), entry.user()), (Some(&b"192.0.2.7"[..]), None));
        assert_eq!((entry.status, entry.bytes, entry.target()), (200, Some(13), Some(&b"/p"[..])));
    }

    #[test]
    fn of_two_hosts_of_traefik_the_first_is_the_client() {
        let line = r#"{"ClientHost":"192.0.2.7, 198.51.100.1","RequestPath":"/p","StartUTC":"2015-05-17T10:05:03Z"}"#;
        assert_eq!(entry(line).address(), Some("192.0.2.7".parse().unwrap()));
    }

    #[test]
    fn envoy() {
        let entry = entry(
            r#"{"start_time":"2015-05-17T10:05:03.250Z","method":"GET","path":"/p","authority":"h:80","response_code":503,"bytes_sent":9,"downstream_remote_address":"[2001:db8::1]:4711","user_agent":null}"#,
        );
        assert_eq!(entry.address(), Some("2001:db8::1".parse().unwrap()));
        assert_eq!((entry.status, entry.host()), (503, Some(&b"h:80"[..])));
        assert_eq!(entry.user_agent(), None);
    }

    #[test]
    fn a_map_of_ones_own() {
        let fields = FieldMap::new([
            "time=when",
            "address=who.ip",
            "header.authorization=auth",
            "duration_us=took",
        ])
        .unwrap();
        let line = r#" { "when" : 1431857103250, "time": "never", "who": {"ip": "::1"}, "took": 1999, "auth": "Bearer x" } "#;
        let entry = read(line, &fields).unwrap();
        assert_eq!((entry.time, entry.duration), (1_431_857_103_250, Some(1)));
        assert_eq!(entry.header(0), Some(&b"Bearer x"[..]));
        assert_eq!(entry.header(1), None);
        assert_eq!(entry.header(4711), None);
    }

    #[test]
    fn what_reports_no_request_is_malformed() {
        let fields = FieldMap::default();
        assert_eq!(read("{}", &fields), Err(Malformed::NoTime));
        assert_eq!(read(r#"{"ts":1431857103}"#, &fields), Err(Malformed::NoRequest));
        assert_eq!(read(r#"{"ts":"soon","uri":"/"}"#, &fields), Err(Malformed::BadTime));
        assert_eq!(read(r#"{"ts":9e30,"uri":"/"}"#, &fields), Err(Malformed::BadTime));
        assert_eq!(
            read(r#"{"ts":1431857103,"uri":"/","status":"fine"}"#, &fields),
            Err(Malformed::BadStatus)
        );
        assert_eq!(
            read(r#"{"ts":1431857103,"uri":"/","status":70000}"#, &fields),
            Err(Malformed::BadStatus)
        );
    }
}
