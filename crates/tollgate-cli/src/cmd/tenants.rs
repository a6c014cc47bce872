//! `tollgate tenants`: plans and own quotas of tenants at a node.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::admin::{AdminClient, tenants};
use crate::failure::Failure;
use crate::output::Form;

/// List, set, remove, import and export the plans and quotas of tenants at a running node
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the tenants
    List(ListFlags),
    /// Show the plan and the own quotas of a tenant
    Get(GetFlags),
    /// Set the plan and the own quotas of a tenant, instead of those that it has
    Set(SetFlags),
    /// Remove the plan and the own quotas of a tenant
    Remove(GetFlags),
    /// Import tenants from CSV or JSON lines
    Import(ImportFlags),
    /// Export all tenants as CSV or JSON lines
    Export(ExportFlags),
}

#[derive(Debug, Args)]
struct ListFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The prefix of the names
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    prefix: String,
    /// The most tenants to list
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000)]
    most: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct GetFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The name of the tenant
    tenant: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct SetFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The name of the tenant
    tenant: String,
    /// The plan
    #[arg(long, value_name = "PLAN", required_unless_present = "quotas")]
    plan: Option<String>,
    /// An own quota, with a burst for a token bucket: LIMIT=QUOTA or LIMIT=QUOTA/BURST; can be
    /// repeated
    #[arg(long = "quota", value_name = "LIMIT=QUOTA")]
    quotas: Vec<tenants::OwnQuota>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ImportFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The file; its name ends in .csv, .ndjson or .jsonl
    file: PathBuf,
    /// Remove the tenants that the file does not have
    #[arg(long)]
    replace: bool,
}

#[derive(Debug, Args)]
struct ExportFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The format
    #[arg(long, value_enum, default_value_t = tenants::Format::Csv)]
    format: tenants::Format,
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let form = |is_json: bool| if is_json { Form::Json } else { Form::Text };
    tokio::runtime::Runtime::new()?.block_on(async {
        match &flags.action {
            Action::List(ListFlags { listener, prefix, most, json }) => {
                tenants::list(listener, (prefix, *most), form(*json)).await
            }
            Action::Get(GetFlags { listener, tenant, json }) => {
                tenants::get(listener, tenant, form(*json)).await
            }
            Action::Set(SetFlags { listener, tenant, plan, quotas, json }) => {
                let row = tenants::row(plan.as_deref(), quotas);
                tenants::set(listener, tenant, &row, form(*json)).await
            }
            Action::Remove(GetFlags { listener, tenant, json }) => {
                tenants::remove(listener, tenant, form(*json)).await
            }
            Action::Import(ImportFlags { listener, file, replace }) => {
                tenants::import(listener, file, *replace).await
            }
            Action::Export(ExportFlags { listener, format }) => {
                tenants::export(listener, *format).await
            }
        }
    })
}
