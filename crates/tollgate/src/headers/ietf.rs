//! `ratelimit-policy` and `ratelimit`: structured fields (RFC 9651) after
//! draft-ietf-httpapi-ratelimit-headers, every visible limit by its name.

use std::fmt::Write;

use http::header::{HeaderMap, HeaderName};
use tollgate_core::{Algorithm, Limit, Unit, Verdict};

use super::{seconds_to_reset, text};

pub(super) fn write(verdict: &Verdict, headers: &mut HeaderMap) {
    let (mut policies, mut standings) = (String::new(), String::new());
    for standing in verdict.standings.iter().filter(|standing| standing.is_visible()) {
        let separator = if policies.is_empty() { "" } else { ", " };
        let name = standing.limit.name();
        let (remaining, to_reset) = (standing.remaining, seconds_to_reset(standing, verdict.now));
        // Writing to a string does not fail.
        let _ = write!(policies, "{separator}\"{name}\"{}", Parameters(&standing.limit));
        let _ = write!(standings, "{separator}\"{name}\";r={remaining};t={to_reset}");
    }
    for (name, value) in [("ratelimit-policy", policies), ("ratelimit", standings)] {
        if let (false, Some(value)) = (value.is_empty(), text(&value)) {
            headers.append(HeaderName::from_static(name), value);
        }
    }
}

/// `q`, `qu` and `w` of a limit. The window is whole seconds or, where it has none, left out.
struct Parameters<'a>(&'a Limit);

impl std::fmt::Display for Parameters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ";q={}", self.0.capacity())?;
        match self.0.unit() {
            Unit::Requests => {}
            Unit::ContentBytes => f.write_str(";qu=\"content-bytes\"")?,
            Unit::ConcurrentRequests => f.write_str(";qu=\"concurrent-requests\"")?,
        }
        let window = self.0.window().get();
        let has_window = !matches!(self.0.algorithm(), Algorithm::Concurrency(_));
        if has_window && window.is_multiple_of(1000) {
            write!(f, ";w={}", window / 1000)?;
        }
        Ok(())
    }
}
