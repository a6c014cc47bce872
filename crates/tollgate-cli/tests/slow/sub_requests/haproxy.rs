//! Tests of HAProxy with the configuration in `deploy/haproxy`.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::sub_requests::edge::{Changes, Kind};
use crate::sub_requests::laws;
use crate::sub_requests::site::{Site, limit_of};

const HAPROXY: Kind = Kind::HaProxy;

const CLOSED: Changes<'static> =
    &[("# http-request deny deny_status 503", "http-request deny deny_status 503")];

const WITH_TOKEN: Changes<'static> = &[("local TOKEN = nil", "local TOKEN = \"0123456789abcdef\"")];

#[test]
fn two_hundred_at_once_and_a_hundred_pass() {
    laws::two_hundred_at_once_and_a_hundred_pass(HAPROXY);
}

#[test]
fn clients_see_their_status() {
    laws::clients_see_their_status(HAPROXY);
}

#[test]
fn rules_see_the_request_that_is_held() {
    laws::rules_see_the_request_that_is_held(HAPROXY);
}

#[test]
fn nobody_forges_a_request_an_address_or_a_token() {
    laws::nobody_forges_a_request_an_address_or_a_token(HAPROXY);
}

#[test]
fn nobody_passes_by_the_size_of_a_head() {
    laws::nobody_passes_by_the_size_of_a_head(HAPROXY);
}

#[test]
fn everything_passes_while_tollgate_is_not_there() {
    laws::everything_passes_while_tollgate_is_not_there(HAPROXY);
}

#[test]
fn nothing_passes_while_tollgate_is_not_there_where_it_is_closed() {
    laws::nothing_passes_while_tollgate_is_not_there(HAPROXY, CLOSED);
}

#[test]
fn a_policy_that_denies_without_its_store_is_obeyed() {
    laws::a_policy_that_denies_without_its_store_is_obeyed(HAPROXY);
}

#[test]
fn no_refusal_is_taken_for_an_outage() {
    laws::no_refusal_is_taken_for_an_outage(HAPROXY);
}

#[test]
fn a_listener_with_tokens_believes_who_shows_one() {
    laws::a_listener_with_tokens_believes_who_shows_one(HAPROXY, WITH_TOKEN);
}

/// The packages of distributions configure both. Only root may use them, so nobody else runs this
/// test.
#[test]
fn a_haproxy_that_drops_its_privileges_still_queries_tollgate() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let dropped: Changes<'static> =
        &[("\nglobal\n", "\nglobal\n    user nobody\n    chroot /proc\n")];
    let site = Site::with_policy(HAPROXY, &limit_of(1), dropped);
    let statuses = [(); 2].map(|()| site.get("/user", &[]).status);
    assert_eq!((statuses, site.api.requested()), ([200, 429], 1));
}
