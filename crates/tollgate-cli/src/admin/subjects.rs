//! Lists the subjects of a limit with `reveal: true`.

use std::collections::BTreeMap;

use clap::Args;
use http::Method;
use serde_json::{Value, json};

use super::AdminClient;
use super::format::{members, word};
use super::subject::encoded;
use crate::failure::Failure;
use crate::output::{Form, print};

/// The subjects to list.
#[derive(Clone, Debug, Args)]
pub(crate) struct SubjectFilter {
    /// The name of the limit
    #[arg(long, value_name = "NAME")]
    limit: String,
    /// The prefix of the value of the first subject in the limit's `per`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// The most subjects to list
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    most: usize,
}

/// Lists the subjects that the node of `client` has in clear text, page by page.
///
/// # Errors
/// The error message of the node, or a message that the node did not respond.
pub(crate) async fn list(
    client: &AdminClient,
    filter: &SubjectFilter,
    form: Form,
) -> Result<(), Failure> {
    let SubjectFilter { limit, prefix, most } = filter;
    let path = format!("/v1/subjects?limit={}&prefix={}", encoded(limit), encoded(prefix));
    // A page can repeat subjects of the previous page.
    let mut listed = BTreeMap::new();
    let mut page = path.clone();
    let (source, has_more) = loop {
        let answer = client.call(Method::GET, &page, None).await?;
        listed.extend(members(&answer["subjects"]).iter().map(|it| (line(it), it.clone())));
        let next = answer["next"].as_str();
        let Some(next) = next.filter(|_| listed.len() < *most) else {
            break (answer["source"].clone(), next.is_some() || listed.len() > *most);
        };
        page = format!("{path}&after={}", encoded(next));
    };
    let listed: Vec<_> = listed.into_iter().take(*most).collect();
    if form == Form::Json {
        let listed: Vec<_> = listed.into_iter().map(|(_, subject)| subject).collect();
        let page =
            json!({ "limit": limit, "source": source, "subjects": listed, "more": has_more });
        return print(&format!("{page:#}\n"));
    }
    let mut text: String = listed.iter().map(|(line, _)| format!("{line}\n")).collect();
    if source == "recent" {
        text += "only subjects that this node decided recently: the store has no names\n";
    }
    if has_more {
        text += "there are more: raise --most, or narrow with --prefix\n";
    }
    print(&text)
}

/// Formats a subject as `user=42 route=/a`, a form that other commands accept.
fn line(subject: &Value) -> String {
    let pairs = subject.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::Null => name.clone(),
        value => format!("{name}={}", word(value)),
    });
    pairs.collect::<Vec<_>>().join(" ")
}
