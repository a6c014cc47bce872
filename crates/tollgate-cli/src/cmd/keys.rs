//! `tollgate keys`: how a subject stands at a node, which there are, starting afresh, and overrides.

use clap::{Args, Subcommand};

use crate::admin::{AdminClient, Subject, key, overrides, subjects};
use crate::failure::Failure;
use crate::output::Form;

/// Show how a subject stands at a running node, list subjects, start afresh, override limits
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show how limits stand for a subject, and which overrides it has
    Show(ShowFlags),
    /// List the subjects of a limit that reveals them
    List(SubjectsFlags),
    /// Forget what a subject used
    Reset(KeyFlags),
    /// Set another quota, unlimited or blocked, for a subject or a group, or remove what was set
    Override(OverrideFlags),
    /// List the overrides in force
    Overrides(ListFlags),
}

#[derive(Debug, Args)]
struct KeyFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The name of a limit; several may be asked
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
    sought: subjects::SubjectFilter,
    #[command(flatten)]
    shown: OutputFlags,
}

#[derive(Debug, Args)]
struct OverrideFlags {
    #[command(flatten)]
    listener: AdminClient,
    /// The name of the only limit that it is about
    #[arg(long, value_name = "NAME")]
    limit: Option<String>,
    #[command(flatten)]
    subject: Subject,
    #[command(flatten)]
    asked: overrides::OverrideArgs,
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
    /// As JSON
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
                subjects::list(&flags.listener, &flags.sought, flags.shown.form()).await
            }
            Action::Reset(flags) => {
                let answer = key::reset(&flags.listener, &flags.limits, &flags.subject).await?;
                key::print(&answer, flags.shown.form())
            }
            Action::Override(flags) => {
                let OverrideFlags { listener, limit, subject, asked } = flags;
                overrides::change(listener, limit.as_deref(), subject, asked).await
            }
            Action::Overrides(flags) => overrides::list(&flags.listener, flags.shown.form()).await,
        }
    })
}
