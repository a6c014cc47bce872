//! Sets and removes overrides at a running node.

use clap::Args;
use http::Method;
use serde_json::{Map, Value, json};

use super::AdminClient;
use super::format::{lines, members, table, when, word};
use super::subject::{Subject, encoded};
use crate::failure::Failure;
use crate::output::{Form, print};

/// The target of an override and its values.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct OverrideArgs {
    /// Override all subjects with this one value, or with an address in this one network
    #[arg(long)]
    group: bool,
    /// Apply the override to every subject: a kill switch for the limit, or for all limits
    #[arg(long, conflicts_with_all = ["group", "values"])]
    everybody: bool,
    /// Apply the override to every request that this rule matches: a kill switch for the rule
    #[arg(long, value_name = "NAME", conflicts_with_all = ["group", "values", "everybody", "limit"])]
    rule: Option<String>,
    /// Apply the override to load shedding, for every request: to all kinds, or to one kind
    #[arg(
        long,
        value_name = "WHICH",
        value_parser = ["all", "fleet", "worker"],
        conflicts_with_all = ["group", "values", "everybody", "limit", "rule"]
    )]
    shedding: Option<String>,
    #[command(flatten)]
    effect: Effect,
    /// The burst of a token bucket
    #[arg(long, value_name = "UNITS", requires = "quota")]
    burst: Option<u64>,
    /// How long the override lasts, such as 90s, 15m, 12h or 7d; or never, for no end
    #[arg(long = "for", value_name = "TIME", required_unless_present = "remove")]
    lasts: Option<String>,
    /// The reason, for other operators
    #[arg(long, value_name = "TEXT", required_unless_present = "remove")]
    reason: Option<String>,
}

/// The decision that replaces the policy's.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = false)]
struct Effect {
    /// Another quota: units per window
    #[arg(long, value_name = "UNITS", requires = "limit")]
    quota: Option<u64>,
    /// Admit every request
    #[arg(long)]
    unlimited: bool,
    /// Refuse every request
    #[arg(long)]
    blocked: bool,
    /// Admit every request, and count it as a shadow rule does
    #[arg(long)]
    counted: bool,
    /// Remove the override
    #[arg(long)]
    remove: bool,
}

/// Sets or removes an override, and prints the previous and the new override of the target.
pub(crate) async fn change(
    client: &AdminClient,
    limit: Option<&str>,
    subject: &Subject,
    args: &OverrideArgs,
) -> Result<(), Failure> {
    let answer = if args.effect.remove {
        let limit = limit.map(|limit| format!("limit={}", encoded(limit))).unwrap_or_default();
        let whose = match switch(args) {
            Some((name, value)) => {
                let value = value.as_str().map_or_else(|| value.to_string(), encoded);
                format!("&{name}={value}")
            }
            None => subject.parameters(group(args)),
        };
        let path = format!("/v1/overrides?{limit}{whose}");
        client.call(Method::DELETE, &path, None).await?
    } else {
        let body = body(limit, subject, args);
        client.call(Method::PUT, "/v1/overrides", Some(&body)).await?
    };
    let describe = |one: &Value| if one.is_null() { "none".to_owned() } else { sentence(one) };
    let mut text =
        format!("was: {}\nis: {}\n", describe(&answer["before"]), describe(&answer["after"]));
    if answer["pending"] == true {
        text += "only on this node: the store does not answer; the change is sent when it does\n";
    }
    print(&text)
}

/// Returns the member of the request that selects the target of a kill switch: the name and the
/// value of the member. Returns `None` if the override has a subject or a group as its target.
fn switch(args: &OverrideArgs) -> Option<(&'static str, Value)> {
    match (&args.rule, &args.shedding) {
        (Some(rule), _) => Some(("rule", rule.as_str().into())),
        (None, Some(which)) => Some(("shedding", which.as_str().into())),
        (None, None) => args.everybody.then(|| ("everybody", true.into())),
    }
}

fn group(args: &OverrideArgs) -> &'static str {
    if args.group { "group" } else { "subject" }
}

fn body(limit: Option<&str>, subject: &Subject, args: &OverrideArgs) -> Value {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    let (target, who) = switch(args).unwrap_or_else(|| (group(args), subject.members().into()));
    put(target, who);
    if let Some(limit) = limit {
        put("limit", limit.into());
    }
    let Effect { quota, unlimited, blocked, counted, .. } = args.effect;
    for (name, units) in [("quota", quota), ("burst", args.burst)] {
        if let Some(units) = units {
            put(name, units.into());
        }
    }
    for (name, is_asked) in [("unlimited", unlimited), ("blocked", blocked), ("counted", counted)] {
        if is_asked {
            put(name, true.into());
        }
    }
    put("expires_in", json!(args.lasts));
    put("reason", json!(args.reason));
    body.into()
}

/// Prints the active overrides.
pub(crate) async fn list(client: &AdminClient, form: Form) -> Result<(), Failure> {
    let answer = client.call(Method::GET, "/v1/overrides", None).await?;
    if form == Form::Json {
        return print(&format!("{answer:#}\n"));
    }
    let mut table = table(&["target", "limit", "effect", "ends", "reason"]);
    for one in members(&answer["overrides"]) {
        let is_of_limits = one["rule"].is_null() && one["shedding"].is_null();
        let every = || if is_of_limits { "all".to_owned() } else { "-".to_owned() };
        let limit = one["limit"].as_str().map_or_else(every, |_| word(&one["limit"]));
        let (ends, reason) = (
            one["expires"].as_u64().map_or_else(|| "never".to_owned(), when),
            word(&one["reason"]),
        );
        table.add_row([target(one), limit, effect(one), ends, reason]);
    }
    let mut text = lines(&table);
    if answer["location"] == "process" {
        text += "stored only on this node: they are lost when its process ends\n";
    }
    match answer["pending"].as_u64() {
        None | Some(0) => {}
        Some(1) => text += "1 change is only on this node until the store answers\n",
        Some(changes) => {
            text += &format!("{changes} changes are only on this node until the store answers\n");
        }
    }
    if let Some(failure) = answer["failure"].as_str() {
        text += &format!("the last read failed: {failure}\n");
    }
    print(&text)
}

/// Describes an override in a few words.
pub(super) fn sentence(one: &Value) -> String {
    let limit = one["limit"].as_str().map(|_| format!(" on {}", word(&one["limit"])));
    let ends = one["expires"].as_u64().map(|second| format!("ends {}", when(second)));
    let ends = ends.unwrap_or_else(|| "without an end".to_owned());
    let (target, effect, reason) = (target(one), effect(one), word(&one["reason"]));
    format!("{target}{}: {effect}, {ends}: {reason}", limit.unwrap_or_default())
}

fn target(one: &Value) -> String {
    if one["rule"].is_string() {
        return format!("rule {}", word(&one["rule"]));
    }
    if let Some(which) = one["shedding"].as_str() {
        return match which {
            "fleet" => "load shedding by the load of all nodes (fleet)".to_owned(),
            "worker" => "load shedding by each node's own load (worker)".to_owned(),
            _ => "all load shedding".to_owned(),
        };
    }
    let (word_before, values) = match one["group"].as_object() {
        Some(group) => ("all subjects with ", Some(group)),
        None => ("", one["subject"].as_object()),
    };
    let pair = |(name, value): (&String, &Value)| {
        let value = if value.is_null() { "(none)".to_owned() } else { word(value) };
        format!("{name}={value}")
    };
    let pairs: Vec<_> = values.into_iter().flatten().map(pair).collect();
    if pairs.is_empty() {
        "everybody".to_owned()
    } else {
        format!("{word_before}{}", pairs.join(", "))
    }
}

fn effect(one: &Value) -> String {
    match (one["quota"].as_u64(), one["burst"].as_u64()) {
        (Some(quota), Some(burst)) => format!("quota {quota}, burst {burst}"),
        (Some(quota), None) => format!("quota {quota}"),
        (None, _) if one["blocked"] == true => "blocked".to_owned(),
        (None, _) if one["counted"] == true => "counted, never refused".to_owned(),
        (None, _) => "unlimited".to_owned(),
    }
}
