//! `tollgate keys`: the status of a subject at a node, the list of subjects, resets, and overrides.

use clap::{Args, Subcommand};

use crate::admin::{AdminClient, Subject, key, overrides, subjects};
use crate::failure::Failure;
use crate::output::Form;

/// Show the status of a subject at a running node, list subjects, reset them, override limits
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the status of limits for a subject, and its overrides
    Show(ShowFlags),
    /// List the subjects of a limit with `reveal: true`
    List(SubjectsFlags),
    /// Reset the usage of a subject, so that the subject starts with its whole quota
    Reset(KeyFlags),
    /// Set another quota, unlimited or blocked, for a subject or a group, or remove the override
    Override(OverrideFlags),
    /// List the active overrides
    Overrides(ListFlags),
}

#[derive(Debug, Args)]
struct KeyFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The name of a limit; can be repeated
    #[arg(long = "limit", value_name = "NAME", required = true)]
    limits: Vec<String>,
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    shown: OutputFlags,
}

#[derive(Debug, Args)]
struct ShowFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The name of a limit, may be given more than once; all limits that count by the subject if
    /// none is given
    #[arg(long = "limit", value_name = "NAME")]
    limits: Vec<String>,
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    shown: OutputFlags,
}

#[derive(Debug, Args)]
struct SubjectsFlags {
    #[command(flatten)]
    listener: AdminClient,
    #[command(flatten)]
    filter: subjects::SubjectFilter,
    #[command(flatten)]
    shown: OutputFlags,
}

#[derive(Debug, Args)]
struct OverrideFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The name of a limit, to override only that one
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    change: overrides::OverrideArgs,
}

#[derive(Debug, Args)]
struct ListFlags {
    #[command(flatten)]
    listener: AdminClient,
    #[command(flatten)]
    shown: OutputFlags,
}

#[derive(Debug, Args)]
struct OutputFlags {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl OutputFlags {
    fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    tokio::runtime::Runtime::new()?.block_on(async {
        match &flags.action {
            Action::Show(flags) => {
                let answer = key::show(&flags.listener, &flags.limits, &flags.subject).await?;
                key::print(&answer, flags.shown.form())
            }
            Action::List(flags) => {
                subjects::list(&flags.listener, &flags.filter, flags.shown.form()).await
            }
            Action::Reset(flags) => {
                let answer = key::reset(&flags.listener, &flags.limits, &flags.subject).await?;
                key::print(&answer, flags.shown.form())
            }
            Action::Override(flags) => {
                let OverrideFlags { listener, limit, subject, change } = flags;
                overrides::change(listener, limit.as_deref(), subject, change).await
            }
            Action::Overrides(flags) => overrides::list(&flags.listener, flags.shown.form()).await,
        }
    })
}
