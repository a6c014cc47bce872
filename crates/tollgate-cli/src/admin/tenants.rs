//! Lists, sets, removes, imports and exports tenants at a running node.

mod upload;

use std::path::Path;
use std::str::FromStr;

use clap::ValueEnum;
use http::Method;
use serde_json::{Map, Value, json};

use self::upload::FileBody;
use super::AdminClient;
use super::format::{lines, members, table, word};
use super::subject::encoded;
use crate::failure::Failure;
use crate::output::{Form, print};

/// The number of tenants on one page of an export.
const PAGE: usize = 10_000;

/// An own quota on the command line: `LIMIT=QUOTA` or `LIMIT=QUOTA/BURST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnQuota {
    limit: String,
    quota: u64,
    burst: Option<u64>,
}

/// The format of exported tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A header, and one line for each tenant
    Csv,
    /// One JSON object on each line
    Ndjson,
}

impl FromStr for OwnQuota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write LIMIT=QUOTA or LIMIT=QUOTA/BURST, such as calls=1000".to_owned();
        let number = |text: &str| text.parse().map_err(|_| wrong());
        let (limit, numbers) = text.split_once('=').ok_or_else(wrong)?;
        let (quota, burst) = match numbers.split_once('/') {
            Some((quota, burst)) => (quota, Some(number(burst)?)),
            None => (numbers, None),
        };
        Ok(Self { limit: limit.to_owned(), quota: number(quota)?, burst })
    }
}

/// Returns the JSON document that sets the plan and the own quotas of a tenant.
pub(crate) fn row(plan: Option<&str>, quotas: &[OwnQuota]) -> Value {
    let mut row = Map::new();
    if let Some(plan) = plan {
        row.insert("plan".to_owned(), plan.into());
    }
    if !quotas.is_empty() {
        let quota = |one: &OwnQuota| {
            let mut own = json!({ "quota": one.quota });
            if let Some(burst) = one.burst {
                own["burst"] = burst.into();
            }
            (one.limit.clone(), own)
        };
        row.insert("quotas".to_owned(), Value::Object(quotas.iter().map(quota).collect()));
    }
    row.into()
}

/// Prints up to `most` tenants with names that begin with `prefix`.
pub(crate) async fn list(
    client: &AdminClient,
    (prefix, most): (&str, usize),
    form: Form,
) -> Result<(), Failure> {
    let mut listed = Vec::new();
    let mut after = None;
    let (first, has_more) = loop {
        let count = most.saturating_sub(listed.len()).clamp(1, PAGE);
        let page = page(client, prefix, after.as_deref(), count).await?;
        listed.extend(members(&page["tenants"]).iter().cloned());
        after = page["next"].as_str().map(str::to_owned);
        if after.is_none() || listed.len() >= most {
            break (page, after.is_some());
        }
    };
    if form == Form::Json {
        let (count, failure) = (&first["count"], &first["failure"]);
        let all =
            json!({ "count": count, "failure": failure, "tenants": listed, "more": has_more });
        return print(&format!("{all:#}\n"));
    }
    let mut table = table(&["tenant", "plan", "quotas"]);
    for one in &listed {
        table.add_row([word(&one["tenant"]), plan(one), quotas(one)]);
    }
    let mut text = lines(&table);
    if first["location"] == "process" {
        text += "stored only on this node: they are lost when its process ends\n";
    }
    if let Some(failure) = first["failure"].as_str() {
        text += &format!("the last read failed: {failure}\n");
    }
    if first["loaded"] == false {
        text += "this node has not read all tenants yet: they have the default quotas\n";
    }
    if has_more {
        text +=
            &format!("there are more, {} in all: raise --most, or use --prefix\n", first["count"]);
    }
    print(&text)
}

/// Prints the plan and the own quotas of the tenant called `name`.
pub(crate) async fn get(client: &AdminClient, name: &str, form: Form) -> Result<(), Failure> {
    let answer = client.call(Method::GET, &path(name), None).await?;
    match form {
        Form::Json => print(&format!("{answer:#}\n")),
        Form::Text => print(&format!("{}\n", sentence(&answer))),
    }
}

/// Sets the plan and the own quotas of the tenant called `name` to those in `row`.
pub(crate) async fn set(
    client: &AdminClient,
    name: &str,
    row: &Value,
    form: Form,
) -> Result<(), Failure> {
    changed(&client.call(Method::PUT, &path(name), Some(row)).await?, form)
}

/// Removes the plan and the own quotas of the tenant called `name`.
pub(crate) async fn remove(client: &AdminClient, name: &str, form: Form) -> Result<(), Failure> {
    changed(&client.call(Method::DELETE, &path(name), None).await?, form)
}

/// Imports the rows of a file, all or none.
pub(crate) async fn import(
    client: &AdminClient,
    file: &Path,
    replaces: bool,
) -> Result<(), Failure> {
    let extension = file.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let media_type = match extension.to_ascii_lowercase().as_str() {
        "csv" => "text/csv",
        "ndjson" | "jsonl" => "application/x-ndjson",
        _ => {
            let at = file.display();
            return Err(
                format!("{at}: the name of the file ends in .csv, .ndjson or .jsonl").into()
            );
        }
    };
    let body = FileBody::open(file)?;
    let path = if replaces { "/v1/tenants?replace=true" } else { "/v1/tenants" };
    let answer = client.upload(path, media_type, body).await?;
    let number = |name: &str| answer[name].as_u64().unwrap_or_default();
    let (rows, before, after) = (number("rows"), number("before"), number("after"));
    print(&format!("{rows} rows imported: {before} tenants before, {after} now\n"))
}

/// Exports all tenants, page by page.
pub(crate) async fn export(client: &AdminClient, format: Format) -> Result<(), Failure> {
    if format == Format::Csv {
        print("tenant,plan,quotas\n")?;
    }
    let mut after: Option<String> = None;
    loop {
        let page = page(client, "", after.as_deref(), PAGE).await?;
        let line = |one: &Value| match format {
            Format::Csv => csv(one),
            Format::Ndjson => format!("{one}\n"),
        };
        print(&members(&page["tenants"]).iter().map(line).collect::<String>())?;
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return Ok(()),
        }
    }
}

async fn page(
    client: &AdminClient,
    prefix: &str,
    after: Option<&str>,
    count: usize,
) -> Result<Value, Failure> {
    let after = after.map(|after| format!("&after={}", encoded(after))).unwrap_or_default();
    let path = format!("/v1/tenants?count={count}&prefix={}{after}", encoded(prefix));
    client.call(Method::GET, &path, None).await
}

fn path(name: &str) -> String {
    format!("/v1/tenants/{}", encoded(name))
}

fn changed(answer: &Value, form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        return print(&format!("{answer:#}\n"));
    }
    let describe = |one: &Value| if one.is_null() { "none".to_owned() } else { sentence(one) };
    print(&format!("was: {}\nis: {}\n", describe(&answer["before"]), describe(&answer["after"])))
}

/// Describes a tenant in one line, such as `acme: plan pro, calls=1000/50`.
fn sentence(one: &Value) -> String {
    let plan = one["plan"].as_str().map(|_| format!("plan {}", plan(one)));
    let own = Some(quotas(one)).filter(|own| !own.is_empty());
    let parts: Vec<String> = plan.into_iter().chain(own).collect();
    format!("{}: {}", word(&one["tenant"]), parts.join(", "))
}

fn plan(one: &Value) -> String {
    word(&one["plan"])
}

/// Describes the own quotas of a tenant, such as `calls=1000/50 exports=20`.
fn quotas(one: &Value) -> String {
    let quota = |(limit, own): (&String, &Value)| {
        let burst = own["burst"].as_u64().map(|burst| format!("/{burst}"));
        let (limit, burst) = (word(&limit.as_str().into()), burst.unwrap_or_default());
        format!("{limit}={}{burst}", own["quota"])
    };
    let quotas = one["quotas"].as_object().into_iter().flatten().map(quota);
    quotas.collect::<Vec<_>>().join(" ")
}

/// Returns the line of a tenant in CSV (RFC 4180).
fn csv(one: &Value) -> String {
    let field = |text: &str| match text.contains(['"', ',']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let text = |name: &str| field(one[name].as_str().unwrap_or_default());
    format!("{},{},{}\n", text("tenant"), text("plan"), quotas(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_of_csv_and_a_sentence() {
        let own = json!({ "calls": { "quota": 1000, "burst": 50 }, "exports": { "quota": 20 } });
        let row = json!({ "tenant": "a, \"b\"", "plan": "pro", "quotas": own });
        assert_eq!(csv(&row), "\"a, \"\"b\"\"\",pro,calls=1000/50 exports=20\n");
        assert_eq!(sentence(&row), "a, \"b\": plan pro, calls=1000/50 exports=20");
        assert_eq!(csv(&json!({ "tenant": "acme", "plan": "free" })), "acme,free,\n");
    }

    #[test]
    fn quotas_are_read_from_the_command_line() {
        let quotas = ["calls=1000/50", "exports=20"].map(|text| text.parse::<OwnQuota>().unwrap());
        let own = json!({ "calls": { "quota": 1000, "burst": 50 }, "exports": { "quota": 20 } });
        assert_eq!(row(Some("pro"), &quotas), json!({ "plan": "pro", "quotas": own }));
        for wrong in ["calls", "calls=", "calls=x", "calls=1/", "calls=-1"] {
            assert!(wrong.parse::<OwnQuota>().unwrap_err().contains("LIMIT=QUOTA"), "{wrong}");
        }
    }
}
