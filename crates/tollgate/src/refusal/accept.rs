//! The choice of a body by the client's `Accept` field (RFC 9110, section 12.5.1).

use tollgate_core::refusal::RefusalSettings;

/// The most bytes of the `Accept` field that are read. A longer field counts as absent.
const MAX_FIELD: usize = 4_096;

/// A format of the body of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    Problem,
    Json,
    Html,
    Text,
}

impl Offer {
    const fn media_type(self) -> (&'static str, &'static str) {
        match self {
            Self::Problem => ("application", "problem+json"),
            Self::Json => ("application", "json"),
            Self::Html => ("text", "html"),
            Self::Text => ("text", "plain"),
        }
    }
}

/// Returns whether the policy sets bodies in several formats, so the client can choose one of them.
pub(super) fn is_negotiated(settings: &RefusalSettings) -> bool {
    own(settings).count() > 1
}

/// Returns the formats for which the policy sets a body of its own.
fn own(settings: &RefusalSettings) -> impl Iterator<Item = Offer> {
    let json = settings.json.as_ref().map(|_| Offer::Json);
    let html = settings.html.as_ref().map(|_| Offer::Html);
    let text = settings.text.as_ref().map(|_| Offer::Text);
    json.into_iter().chain(html).chain(text)
}

/// Returns the format of the body that the client prefers. If the policy sets a body in only one
/// format, every client receives this body. If the client prefers several formats equally, or
/// accepts none, the client receives the first format in this order: problem details, JSON, HTML,
/// text. If the policy sets a JSON body, JSON comes before problem details.
pub(super) fn choose(settings: &RefusalSettings, accept: Option<&[u8]>) -> Offer {
    if !is_negotiated(settings) {
        return own(settings).next().unwrap_or(Offer::Problem);
    }
    let json_first = if settings.json.is_some() {
        [Offer::Json, Offer::Problem]
    } else {
        [Offer::Problem, Offer::Json]
    };
    let html = settings.html.as_ref().map(|_| Offer::Html);
    let text = settings.text.as_ref().map(|_| Offer::Text);
    let offers = json_first.into_iter().chain(html).chain(text);
    let accept = accept.filter(|field| field.len() <= MAX_FIELD);
    let Some(accept) = accept.and_then(|field| std::str::from_utf8(field).ok()) else {
        return json_first[0];
    };
    let mut best = (json_first[0], 0);
    for offer in offers {
        let quality = quality(accept, offer);
        if quality > best.1 {
            best = (offer, quality);
        }
    }
    best.0
}

/// Returns the quality that `accept` gives `offer`, in thousandths. The most specific media range
/// that contains the offer decides.
fn quality(accept: &str, offer: Offer) -> u16 {
    let (kind, name) = offer.media_type();
    let mut found = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let specificity = match media_type.split_once('/') {
            Some(("*", "*")) => 1,
            Some((its, "*")) if its.eq_ignore_ascii_case(kind) => 2,
            Some((its, one))
                if its.eq_ignore_ascii_case(kind) && one.eq_ignore_ascii_case(name) =>
            {
                3
            }
            _ => continue,
        };
        let weight =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let weight = weight.map_or(Some(1_000), thousandths).unwrap_or(0);
        if specificity > found.0 {
            found = (specificity, weight);
        }
    }
    found.1
}

/// Parses a quality as thousandths: `0.25` is 250.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    if rest.len() > 3 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest: u16 = format!("{rest:0<3}").parse().ok()?;
    match whole {
        "0" => Some(rest),
        "1" if rest == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::refusal::Template;

    #[test]
    fn the_client_chooses_the_body() {
        let template = || Some(Template::parse("x").unwrap());
        let settings =
            RefusalSettings { html: template(), text: template(), ..RefusalSettings::default() };
        let with_json = RefusalSettings { json: template(), ..settings.clone() };
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (accept, offer) in [
            (browser, Offer::Html),
            ("application/json", Offer::Json),
            ("application/problem+json, application/json;q=0.5", Offer::Problem),
            ("text/*", Offer::Html),
            ("text/html;q=0.1, text/*", Offer::Text),
            ("text/plain; q=0.9, text/html; q=0.8", Offer::Text),
        ] {
            assert_eq!(choose(&settings, Some(accept.as_bytes())), offer, "{accept}");
            assert_eq!(choose(&with_json, Some(accept.as_bytes())), offer, "{accept}");
        }
        for accept in ["*/*", "image/png", "", "text/html;q=0", "application/*;q=2", "\u{e9}"] {
            assert_eq!(choose(&settings, Some(accept.as_bytes())), Offer::Problem, "{accept}");
            assert_eq!(choose(&with_json, Some(accept.as_bytes())), Offer::Json, "{accept}");
        }
        assert_eq!(choose(&settings, None), Offer::Problem);
        let long = format!("text/html{}", " ".repeat(MAX_FIELD));
        assert_eq!(choose(&settings, Some(long.as_bytes())), Offer::Problem);
        assert_eq!(choose(&RefusalSettings::default(), Some(b"text/html")), Offer::Problem);
        let only = RefusalSettings { text: template(), ..RefusalSettings::default() };
        for accept in [None, Some(&b"text/html"[..]), Some(b"application/json")] {
            assert_eq!(choose(&only, accept), Offer::Text);
        }
    }
}
