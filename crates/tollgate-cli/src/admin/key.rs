//! The status of limits for a subject.

use http::Method;
use serde_json::Value;

use super::format::{lines, members, table, when, word};
use super::subject::{Subject, encoded};
use super::{AdminClient, overrides};
use crate::failure::Failure;
use crate::output::{self, Form};

/// Requests the status of limits for a subject, with the subject's overrides, and returns the
/// node's response.
pub(crate) async fn show(
    client: &AdminClient,
    limits: &[String],
    subject: &Subject,
) -> Result<Value, Failure> {
    client.call(Method::GET, &path(limits, subject), None).await
}

/// Resets the usage of the subject, and returns the new status.
pub(crate) async fn reset(
    client: &AdminClient,
    limits: &[String],
    subject: &Subject,
) -> Result<Value, Failure> {
    client.call(Method::DELETE, &path(limits, subject), None).await
}

fn path(limits: &[String], subject: &Subject) -> String {
    let limits: Vec<_> = limits.iter().map(|name| format!("&limit={}", encoded(name))).collect();
    let query = limits.concat() + &subject.parameters("subject");
    format!("/v1/standing?{}", query.trim_start_matches('&'))
}

/// Prints the response that [`show`] or [`reset`] returned.
pub(crate) fn print(answer: &Value, form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        return output::print(&format!("{answer:#}\n"));
    }
    let mut table = table(&["name", "used", "limit", "remaining", "reset"]);
    for status in members(&answer["statuses"]) {
        let number = |name: &str| status[name].as_u64().unwrap_or_default();
        table.add_row([
            word(&status["name"]),
            number("used").to_string(),
            number("limit").to_string(),
            number("remaining").to_string(),
            when(number("reset")),
        ]);
    }
    let mut text = lines(&table);
    for one in members(&answer["overrides"]) {
        text += &format!("override: {}\n", overrides::sentence(one));
    }
    output::print(&text)
}
