//! Handing a request over from its client's connection to the upstream's.

use http::Request;

use crate::{hop, upgrade::Upgrade};

/// Makes of the fields that concern the client's connection those that concern the upstream's: all go, but for an
/// upgrade to one of `upgrades` and for the wish for trailers, which are said anew.
///
/// It has to be done before anybody decides on the request: a field that is decided on and removed afterwards would
/// make another request of it.
pub(crate) fn hand_over<B>(request: &mut Request<B>, upgrades: &[String]) {
    if !hop::concern_connections(request.headers()) {
        return;
    }
    let upgrade = Upgrade::asked(request, upgrades);
    let headers = request.headers_mut();
    let reads_trailers = hop::reads_trailers(headers);
    hop::remove(headers);
    if reads_trailers {
        hop::ask_for_trailers(headers);
    }
    if let Some(upgrade) = upgrade {
        upgrade.write(headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed_over(lines: &[(&str, &str)]) -> Vec<String> {
        let mut request = Request::builder();
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).expect("a request");
        hand_over(&mut request, &["websocket".to_owned()]);
        let fields = request.headers().iter();
        let mut left: Vec<_> = fields
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("text")))
            .collect();
        left.sort_unstable();
        left
    }

    #[test]
    fn an_upgrade_is_said_anew_where_it_may_be() {
        let wish = [("connection", "x-one, Upgrade"), ("upgrade", "websocket"), ("x-one", "1")];
        assert_eq!(handed_over(&wish), ["connection: upgrade", "upgrade: websocket"]);
        assert!(handed_over(&[("connection", "upgrade"), ("upgrade", "h2c")]).is_empty());
        assert!(handed_over(&wish[1..2]).is_empty());
    }

    #[test]
    fn the_wish_for_trailers_is_said_anew() {
        assert_eq!(handed_over(&[("te", "trailers")]), ["connection: te", "te: trailers"]);
        assert!(handed_over(&[("te", "gzip"), ("connection", "close")]).is_empty());
    }

    #[test]
    fn a_nominated_field_is_gone_before_anybody_decides() {
        let lines = [("connection", "Authorization"), ("authorization", "Bearer x"), ("x", "1")];
        assert_eq!(handed_over(&lines), ["x: 1"]);
    }
}
