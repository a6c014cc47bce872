//! Tests of nginx with the configuration in `deploy/nginx`.

use crate::sub_requests::edge::{Changes, Kind};
use crate::sub_requests::laws::{self, number};
use crate::sub_requests::site::{Site, limit_of};

const NGINX: Kind = Kind::Nginx;

const CLOSED: Changes<'static> = &[("return 204;", "return 403;")];

const WITH_TOKEN: Changes<'static> = &[(
    "# proxy_set_header X-Tollgate-Token \"one of its tokens\";",
    "proxy_set_header X-Tollgate-Token \"0123456789abcdef\";",
)];

const WITH_REFUNDS: Changes<'static> = &[
    ("# auth_request_set $tollgate_receipt", "auth_request_set $tollgate_receipt"),
    ("# post_action", "post_action"),
    ("# include tollgate-refund.conf;", "include tollgate-refund.conf;"),
];

#[test]
fn two_hundred_at_once_and_a_hundred_pass() {
    laws::two_hundred_at_once_and_a_hundred_pass(NGINX);
}

#[test]
fn clients_see_their_status() {
    laws::clients_see_their_status(NGINX);
}

#[test]
fn rules_see_the_request_that_is_held() {
    laws::rules_see_the_request_that_is_held(NGINX);
}

#[test]
fn nobody_forges_a_request_an_address_or_a_token() {
    laws::nobody_forges_a_request_an_address_or_a_token(NGINX);
}

#[test]
fn nobody_passes_by_the_size_of_a_head() {
    laws::nobody_passes_by_the_size_of_a_head(NGINX);
}

#[test]
fn everything_passes_while_tollgate_is_not_there() {
    laws::everything_passes_while_tollgate_is_not_there(NGINX);
}

#[test]
fn nothing_passes_while_tollgate_is_not_there_where_it_is_closed() {
    laws::nothing_passes_while_tollgate_is_not_there(NGINX, CLOSED);
}

#[test]
fn a_policy_that_denies_without_its_store_is_obeyed() {
    laws::a_policy_that_denies_without_its_store_is_obeyed(NGINX);
}

#[test]
fn no_refusal_is_taken_for_an_outage() {
    laws::no_refusal_is_taken_for_an_outage(NGINX);
}

#[test]
fn a_listener_with_tokens_believes_who_shows_one() {
    laws::a_listener_with_tokens_believes_who_shows_one(NGINX, WITH_TOKEN);
}

#[test]
fn another_location_s_refusals_stay_what_they_are() {
    let denied = [("auth_request     /_tollgate;", "auth_request /_tollgate; deny all;")];
    let site = Site::with_policy(NGINX, &limit_of(5), &denied);
    let answer = site.get("/user", &[]);
    assert_eq!((answer.status, answer.field("retry-after"), site.api.requested()), (403, "", 0));
}

#[test]
fn what_has_not_changed_is_refunded() {
    let site = Site::with_policy(NGINX, &limit_of(2), WITH_REFUNDS);
    for _ in 0..10 {
        let answer = site.get("/user", &["if-none-match: \"tag\""]);
        // The status on arrival: nothing was refunded yet.
        assert_eq!((answer.status, number(&answer, "x-ratelimit-remaining")), (304, 1));
    }
    let statuses = [(); 3].map(|()| site.get("/user", &[]).status);
    assert_eq!(statuses, [200, 200, 429]);
}
