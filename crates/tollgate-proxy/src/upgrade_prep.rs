//! Handing a request over from its client's connection to the upstream's.

use http::Request;

use crate::{hop, upgrade::Upgrade};

/// Makes of the fields that concern the client's connection those that concern the upstream's: all go, but for an
/// upgrade to one of `upgrades` and for the wish for trailers, which are said anew.
///
/// It has to be done before anybody decides on the request: a field that is decided on and removed afterwards would
/// make another request of it.
pub(crate) fn prepare_upgrade<B>(request: &mut Request<B>, upgrades: &[String]) {
    if !hop::has_connection_fields(request.headers()) {
        return;
    }
    let upgrade = Upgrade::requested(request, upgrades);
    let headers = request.headers_mut();
    let accepts_trailers = hop::accepts_trailers(headers);
    hop::remove(headers);
    if accepts_trailers {
        hop::request_trailers(headers);
    }
    if let Some(upgrade) = upgrade {
        upgrade.write(headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(lines: &[(&str, &str)]) -> Vec<String> {
        let mut request = Request::builder();
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).expect("a request");
        prepare_upgrade(&mut request, &["websocket".to_owned()]);
        let fields = request.headers().iter();
        let mut left: Vec<_> = fields
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        left.sort_unstable();
        left
    }

    #[test]
    fn an_allowed_upgrade_is_written_again() {
        let wish = [("connection", "x-one, Upgrade"), ("upgrade", "websocket"), ("x-one", "1")];
        assert_eq!(prepared(&wish), ["connection: upgrade", "upgrade: websocket"]);
        assert!(prepared(&[("connection", "upgrade"), ("upgrade", "h2c")]).is_empty());
        assert!(prepared(&wish[1..2]).is_empty());
    }

    #[test]
    fn te_trailers_is_written_again() {
        assert_eq!(prepared(&[("te", "trailers")]), ["connection: te", "te: trailers"]);
        assert!(prepared(&[("te", "gzip"), ("connection", "close")]).is_empty());
    }

    #[test]
    fn a_nominated_field_is_removed_before_the_decision() {
        let lines = [("connection", "Authorization"), ("authorization", "Bearer x"), ("x", "1")];
        assert_eq!(prepared(&lines), ["x: 1"]);
    }
}
