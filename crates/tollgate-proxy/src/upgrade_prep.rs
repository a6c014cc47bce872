//! Conversion of a request's hop-by-hop fields for the connection to the upstream.

use http::Request;

use crate::request_fields::RequestFields;
use crate::{hop, upgrade::Upgrade};

/// Removes the hop-by-hop fields of the client's connection, then sets the fields of the upstream
/// connection: `upgrade`, if the requested protocol is in `upgrades`, and `te: trailers`, if the
/// client sent that field.
///
/// Call this before any decision on the request. A decision that used a field which is removed
/// later would not apply to the request that the upstream receives.
pub(crate) fn prepare_upgrade<B>(
    request: &mut Request<B>,
    upgrades: &[String],
    policy_fields: &RequestFields,
) {
    hop::remove_underscored(request.headers_mut(), policy_fields);
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
        prepared_for(lines, &RequestFields::default())
    }

    fn prepared_for(lines: &[(&str, &str)], policy_fields: &RequestFields) -> Vec<String> {
        let mut request = Request::builder();
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).expect("a request");
        prepare_upgrade(&mut request, &["websocket".to_owned()], policy_fields);
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

    #[test]
    fn fields_with_underscores_that_a_server_may_fold_are_removed() {
        let left = prepared(&[
            ("content_length", "5"),
            ("transfer_encoding", "chunked"),
            ("x_api_key", "decoy"),
            ("x-user", "ann"),
            ("x_user", "bob"),
            ("session_id", "1"),
        ]);
        assert_eq!(left, ["session_id: 1", "x-user: ann"]);
    }

    #[test]
    fn a_field_that_the_policy_reads_is_not_forwarded_with_underscores() {
        let fields = RequestFields::default();
        fields.set(["x-special-key".into(), "x-user-plan".into()].into());
        let lines = [("x_special_key", "key"), ("x_user-plan", "gold"), ("session_id", "1")];
        assert_eq!(prepared_for(&lines, &fields), ["session_id: 1"]);
    }
}
