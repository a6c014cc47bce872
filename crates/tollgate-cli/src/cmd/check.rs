//! `tollgate check`: validates a policy, explains it, and traces a request through it.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tollgate::HashKey;
use tollgate::model::{Headers, RequestAttributes};
use tollgate_policy::{Finding, LoadError, LoadedPolicy, explain, trace};

use crate::doctor;
use crate::failure::Failure;
use crate::output;

/// Validate a policy, explain it, and show which limits apply to a request
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// The policy file
    #[arg(value_name = "FILE", required_unless_present = "policy")]
    file: Option<PathBuf>,
    /// The policy file, as a flag
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    policy: Option<PathBuf>,
    /// Fail if there are warnings
    #[arg(long)]
    strict: bool,
    /// Also connect to the servers of the store, and warn about what `tollgate doctor` finds, such as
    /// a deadline below two round trips
    #[arg(long)]
    store: bool,
    /// Print errors and warnings as JSON, and no explanation
    #[arg(long)]
    json: bool,
    /// Trace a request with this method; GET if another part of a request is given
    #[arg(long, value_name = "METHOD", help_heading = "A request")]
    method: Option<String>,
    /// Trace a request for this path, with or without a query; / if another part of a request is given
    #[arg(long, value_name = "PATH", help_heading = "A request")]
    path: Option<String>,
    /// A header of the request; can be repeated
    #[arg(long, value_name = "NAME: VALUE", value_parser = header, help_heading = "A request")]
    header: Vec<Header>,
    /// The host of the request
    #[arg(long, value_name = "HOST", help_heading = "A request")]
    host: Option<String>,
    /// The client's address
    #[arg(long, value_name = "ADDR", help_heading = "A request")]
    from: Option<IpAddr>,
}

#[derive(Clone, Debug)]
struct Header {
    name: String,
    value: String,
}

fn header(text: &str) -> Result<Header, String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok(Header { name: name.trim().to_lowercase(), value: value.trim().to_owned() })
        }
        _ => Err("expected a header as 'name: value'".to_owned()),
    }
}

struct Fields<'a>(&'a [Header]);

impl Headers for Fields<'_> {
    fn value(&self, name: &str, index: usize) -> Option<&[u8]> {
        let mut of_name = self.0.iter().filter(|header| header.name == name);
        of_name.nth(index).map(|header| header.value.as_bytes())
    }
}

impl Flags {
    fn names_a_request(&self) -> bool {
        self.method.is_some()
            || self.path.is_some()
            || self.host.is_some()
            || self.from.is_some()
            || !self.header.is_empty()
    }
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    // This never fails, because clap requires one of the two.
    let path = flags.file.as_ref().or(flags.policy.as_ref()).ok_or("no policy file is given")?;
    let loaded = match tollgate_policy::load(path) {
        Ok(loaded) => loaded,
        Err(LoadError::Invalid(errors)) => {
            if flags.json {
                output::print(&format!("{:#}\n", as_json(errors.findings(), &[], &[])))?;
            } else {
                output::note(&marked("error", errors.findings()));
            }
            return Err(errors.summary().into());
        }
        Err(error) => return Err(error.into()),
    };
    let store = if flags.store {
        tokio::runtime::Runtime::new()?.block_on(doctor::warnings(&loaded))?
    } else {
        Vec::new()
    };
    if flags.json {
        output::print(&format!("{:#}\n", as_json(&[], &loaded.warnings, &store)))?;
    } else {
        output::note(&marked("warning", &loaded.warnings));
        output::note(&store.iter().map(about_store).collect::<String>());
        output::print(&explanation(flags, &loaded))?;
    }
    match loaded.warnings.len() + store.len() {
        count if flags.strict && count > 0 => {
            let things = if count == 1 { "warning" } else { "warnings" };
            Err(format!("{count} {things} in {}, and --strict is set", path.display()).into())
        }
        _ => Ok(()),
    }
}

/// Returns the findings as text. Each finding is marked with `severity`.
fn marked(severity: &str, findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("{severity}: {finding}\n\n")).collect()
}

/// Returns a finding of `tollgate doctor` as a warning.
fn about_store(finding: &doctor::Finding) -> String {
    let doctor::Finding { target, message, remedy, .. } = finding;
    let remedy = remedy.as_ref().map(|remedy| format!("  → {remedy}\n")).unwrap_or_default();
    format!("warning: {target}: {message}\n{remedy}\n")
}

/// Returns `errors`, `warnings` and `store` as one JSON document. `errors` and `warnings` are about
/// the file and have a line and a column. `store` are the warnings about the store, without a
/// location.
fn as_json(errors: &[Finding], warnings: &[Finding], store: &[doctor::Finding]) -> Value {
    let list = |findings: &[Finding]| -> Vec<Value> {
        let one = |finding: &Finding| {
            json!({
                "file": finding.file(),
                "line": finding.line(),
                "column": finding.column(),
                "message": finding.message(),
                "hint": finding.hint(),
            })
        };
        findings.iter().map(one).collect()
    };
    let about_store = |finding: &doctor::Finding| {
        let message = format!("{}: {}", finding.target, finding.message);
        let none = Value::Null;
        json!({ "file": none, "line": none, "column": none, "message": message, "hint": finding.remedy })
    };
    let mut warnings = list(warnings);
    warnings.extend(store.iter().map(about_store));
    json!({ "valid": errors.is_empty(), "errors": list(errors), "warnings": warnings })
}

/// Returns the policy in words. If the flags describe a request, returns the rules and limits that
/// apply to this request instead.
fn explanation(flags: &Flags, loaded: &LoadedPolicy) -> String {
    if !flags.names_a_request() {
        return explain(loaded).to_string();
    }
    let target = flags.path.as_deref().unwrap_or("/");
    let (path, query) =
        target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let fields = Fields(&flags.header);
    let host = fields.value("host", 0).and_then(|host| std::str::from_utf8(host).ok());
    let facts = RequestAttributes {
        method: flags.method.as_deref().unwrap_or("GET"),
        path,
        query,
        host: flags.host.as_deref().or(host),
        peer: flags.from,
        headers: &fields,
    };
    trace(&loaded.policy, &facts, &HashKey::random()).to_string()
}
