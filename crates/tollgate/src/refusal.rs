//! The response to a refused request, by the settings of the policy and the client's `Accept`
//! field.

mod accept;

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate_core::refusal::{RefusalSettings, Template, Variable};
use tollgate_core::{Evaluation, Millis, Policy};

use crate::decision::Decision;
use crate::problem;
use accept::Offer;

/// The media type of a body in HTML.
const HTML: &str = "text/html; charset=utf-8";
/// The media type of a body in plain text.
const TEXT: &str = "text/plain; charset=utf-8";
/// The media type of a body in JSON without problem details.
const JSON: &str = "application/json";

/// The response to a refused request, without the header fields of the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status code of the response, 400 to 599.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body of the response.
    pub body: String,
    settings: Option<Arc<RefusalSettings>>,
}

impl Refusal {
    /// Returns the response to a request that `evaluation` refused. The settings of the response
    /// are those of the first refusing limit that has settings. If there is no such limit, the
    /// settings are those of the first of `rules` that has settings, or else those of the policy.
    /// `accept` is the client's `Accept` field. A client without this field accepts everything.
    #[must_use]
    pub fn new(
        policy: &Policy,
        rules: &[Arc<str>],
        evaluation: &Evaluation,
        accept: Option<&[u8]>,
    ) -> Self {
        let answers = policy.answers();
        let settings = settings(policy, rules, evaluation);
        let own = settings.as_ref().and_then(|settings| settings.status);
        let status = own.unwrap_or(answers.refuse_status);
        let Some(settings) = settings else {
            let (content_type, body) = problem::refusal(&answers.headers, evaluation, status);
            return Self { status, content_type, body, settings: None };
        };
        let rule = rules.first().map(|rule| &**rule).unwrap_or_default();
        let values = Values { evaluation, settings: &settings, rule, status };
        let problem = || problem::refusal(&answers.headers, evaluation, status);
        let (content_type, body) = match accept::choose(&settings, accept) {
            Offer::Problem => problem(),
            Offer::Json => match &settings.json {
                Some(template) => (JSON, values.render(template, in_json)),
                None => (JSON, problem().1),
            },
            Offer::Html => match &settings.html {
                Some(template) => (HTML, values.render(template, in_html)),
                None => problem(),
            },
            Offer::Text => match &settings.text {
                Some(template) => (TEXT, values.render(template, |text| text.into())),
                None => problem(),
            },
        };
        Self { status, content_type, body, settings: Some(settings) }
    }

    /// Returns the response to the request that `decision` refused; see [`new`](Self::new).
    #[must_use]
    pub fn of(decision: &Decision, accept: Option<&[u8]>) -> Self {
        Self::new(&decision.policy, &decision.rules, &decision.evaluation, accept)
    }

    /// Returns the additional header fields: names in lower case, with their values. The header
    /// fields of the limits and the media type are not included.
    pub fn fields(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let settings = self.settings.as_deref();
        let vary = settings.filter(|settings| accept::is_negotiated(settings));
        let link = settings.and_then(|settings| settings.documentation.as_ref());
        let own = settings.into_iter().flat_map(|settings| &settings.headers);
        let vary = vary.map(|_| ("vary", Cow::Borrowed("accept")));
        let link = link.map(|address| ("link", Cow::Owned(format!("<{address}>; rel=\"help\""))));
        let own = own.map(|(name, value)| (&**name, Cow::Borrowed(&**value)));
        vary.into_iter().chain(link).chain(own)
    }

    /// Adds [`fields`](Self::fields) to a response.
    pub fn write_fields(&self, fields: &mut HeaderMap) {
        for (name, value) in self.fields() {
            // Names and values were checked when the policy was loaded.
            let field = (HeaderName::try_from(name), HeaderValue::try_from(&*value));
            if let (Ok(name), Ok(value)) = field {
                fields.append(name, value);
            }
        }
    }
}

fn settings(
    policy: &Policy,
    rules: &[Arc<str>],
    evaluation: &Evaluation,
) -> Option<Arc<RefusalSettings>> {
    // An override replaces a limit by a limit of the same name, which lacks the settings of a
    // refusal.
    let of_limit = || {
        evaluation.refusals().find_map(|status| {
            let mut limits = policy.limits().iter().map(|binding| &binding.limit);
            let limit = limits.find(|limit| limit.name() == status.limit.name())?;
            limit.refusal().cloned()
        })
    };
    let of_rule = || {
        let mut own = policy.rules().iter().filter(|rule| rules.contains(&rule.name));
        own.find_map(|rule| rule.refusal.clone())
    };
    of_limit().or_else(of_rule).or_else(|| policy.answers().refusal.clone())
}

struct Values<'v> {
    evaluation: &'v Evaluation,
    settings: &'v RefusalSettings,
    rule: &'v str,
    status: u16,
}

impl Values<'_> {
    fn render(&self, template: &Template, escape: fn(&str) -> Cow<'_, str>) -> String {
        let visible = self.evaluation.refusals().find(|status| status.is_visible());
        let refused = visible.or_else(|| self.evaluation.refusals().next());
        template.render(|variable, text| {
            let number = match variable {
                Variable::Limit => {
                    text.push_str(&escape(refused.map_or("", |one| one.limit.resource())));
                    return;
                }
                Variable::Rule => return text.push_str(&escape(self.rule)),
                Variable::Documentation => {
                    let address = self.settings.documentation.as_deref().unwrap_or_default();
                    return text.push_str(&escape(address));
                }
                Variable::Quota => visible.map_or(0, |one| one.limit.quota_per_window().0),
                Variable::Remaining => visible.map_or(0, |one| one.remaining),
                Variable::Reset => {
                    refused.map_or(0, |one| one.resets_at.as_millis().div_ceil(1_000))
                }
                Variable::RetryAfter => self
                    .evaluation
                    .retry_after()
                    .map_or(0, |wait| Millis::as_secs_ceil(wait).max(1)),
                Variable::Status => self.status.into(),
            };
            // Writing to a string never fails.
            let _ = write!(text, "{number}");
        })
    }
}

/// Escapes `text` for a JSON string.
fn in_json(text: &str) -> Cow<'_, str> {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '"' | '\\' => escaped.extend(['\\', letter]),
            control if control < ' ' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(control));
            }
            other => escaped.push(other),
        }
    }
    escaped.into()
}

/// Escapes `text` for the text or a quoted attribute of HTML.
fn in_html(text: &str) -> Cow<'_, str> {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_for_their_media_type() {
        assert_eq!(in_html("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
        assert_eq!(in_json("a\"b\\c\n"), "a\\\"b\\\\c\\u000a");
    }
}
