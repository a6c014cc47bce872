//! The step's source, as a server function and as a script.

mod load;

use std::fmt;
use std::sync::LazyLock;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Script, Value};

pub(crate) use load::RuntimeInfo;

use crate::command::{Command, KeyCreation, Layout};

/// The form in which the step runs in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRuntime {
    /// The server module `tollgate`, with the keys and values of functions and scripts.
    Module,
    /// The server module `tollgate`, with tables that many subjects share.
    Tables,
    /// A function, which the server stores and replicates: Redis 7.0 and later, and Valkey.
    Function,
    /// A script, which the server may drop from its cache and which is then loaded again.
    Script,
}

impl StepRuntime {
    /// Returns where the step stores state in this form.
    pub(crate) const fn layout(self) -> Layout {
        match self {
            Self::Tables => Layout::Tables,
            Self::Module | Self::Function | Self::Script => Layout::Keys,
        }
    }
}

impl fmt::Display for StepRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Module => "module",
            Self::Tables => "module with tables",
            Self::Function => "function",
            Self::Script => "script",
        })
    }
}

/// The permitted forms of the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeChoice {
    /// The module if the server has loaded it, otherwise a function if the server supports
    /// functions, otherwise a script. All of them use the same keys and values.
    #[default]
    Best,
    /// Only the module, with tables that many subjects share. A server without the module is not
    /// used. Other forms do not see what is in tables. In a Redis Cluster the same as `Best`.
    Tables,
    /// Only a function. A server without functions, or one that does not permit the user to call
    /// them, is not used.
    Function,
    /// A script, whatever the server supports.
    Script,
}

/// The commands that run the step for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadVerb {
    /// `FCALL_RO` or `EVALSHA_RO`: since Redis 7.0, for users that may call them.
    ReadOnly,
    /// The commands that may also write.
    Plain,
}

/// The access of a call to the server's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The call may change keys, and create them if memory permits.
    Write(KeyCreation),
    /// The call only reads. It also runs on replicas, and without free memory or disk space.
    Read(ReadVerb),
}

/// The step of this version.
pub(crate) static STEP: LazyLock<Step> = LazyLock::new(Step::new);

/// Returns the library of functions that nodes of this version call, as the argument of `FUNCTION
/// LOAD`.
///
/// A node loads it itself if its user may. Otherwise an administrator loads it into each primary
/// before nodes of this version start; libraries of other versions remain.
#[must_use]
pub fn function_library() -> &'static str {
    &STEP.library
}

/// The step's source texts and names.
pub(crate) struct Step {
    /// The name of the library and of its function. It depends on the source, so nodes of two
    /// versions never replace each other's function.
    name: String,
    /// The name of the function for servers that are out of memory.
    tight_name: String,
    /// The name of the function that does not write.
    look_name: String,
    library: String,
    script: String,
    script_hash: String,
}

/// The parts, in the order of their dependencies.
const SOURCE: &str = concat!(
    include_str!("step/numbers.lua"),
    include_str!("step/fixed_window.lua"),
    include_str!("step/series.lua"),
    include_str!("step/sliding_window.lua"),
    include_str!("step/sliding_log.lua"),
    include_str!("step/two_bucket.lua"),
    include_str!("step/token_bucket.lua"),
    include_str!("step/concurrency.lua"),
    include_str!("step/holds.lua"),
    include_str!("step/cells.lua"),
    include_str!("step/values.lua"),
    include_str!("step/decide.lua"),
    include_str!("step/reservations.lua"),
    include_str!("step/transfer.lua"),
    include_str!("step/limits.lua"),
    include_str!("step/jobs.lua"),
    include_str!("step/windows.lua"),
    include_str!("step/runs.lua"),
    include_str!("step/commands.lua"),
    include_str!("step/keys.lua"),
    include_str!("step/main.lua"),
);

impl Step {
    fn new() -> Self {
        let hash = Script::new(SOURCE).get_hash()[..8].to_owned();
        let name = format!("tollgate_v1_{hash}");
        let (tight_name, look_name) = (format!("{name}_tight"), format!("{name}_look"));
        // A function without flags is rejected before it runs if the server is out of memory. The
        // second function is called then, which creates no keys. The third runs on replicas. All of
        // them are the same step, because jobs that only read change nothing.
        let library = format!(
            "#!lua name={name}\n{SOURCE}\n\
             redis.register_function('{name}', run)\n\
             redis.register_function{{\
             function_name='{tight_name}', callback=run, flags={{'allow-oom'}}}}\n\
             redis.register_function{{\
             function_name='{look_name}', callback=run, flags={{'no-writes'}}}}\n"
        );
        let script = format!("{SOURCE}\nreturn run(KEYS, ARGV)\n");
        let script_hash = Script::new(&script).get_hash().to_owned();
        Self { name, tight_name, look_name, library, script, script_hash }
    }

    /// Returns the call that executes `command`.
    pub(crate) fn call(&self, runs: StepRuntime, access: Access, command: &Command<'_>) -> Cmd {
        if matches!(runs, StepRuntime::Module | StepRuntime::Tables) {
            return module_call(access, command);
        }
        let (verb, step) = match (runs, access) {
            (StepRuntime::Function, Access::Write(KeyCreation::Allowed)) => ("FCALL", &self.name),
            (StepRuntime::Function, Access::Write(KeyCreation::Denied)) => {
                ("FCALL", &self.tight_name)
            }
            (StepRuntime::Function, Access::Read(ReadVerb::ReadOnly)) => {
                ("FCALL_RO", &self.look_name)
            }
            (StepRuntime::Function, Access::Read(ReadVerb::Plain)) => ("FCALL", &self.look_name),
            (_, Access::Read(ReadVerb::ReadOnly)) => ("EVALSHA_RO", &self.script_hash),
            (_, Access::Write(_) | Access::Read(ReadVerb::Plain)) => ("EVALSHA", &self.script_hash),
        };
        let mut call = redis::cmd(verb);
        call.arg(step);
        call.arg(command.keys.len()).arg(&command.keys).arg(&command.argument);
        call
    }
}

/// Returns the call of the module that executes `command`.
fn module_call(access: Access, command: &Command<'_>) -> Cmd {
    let mut call = redis::cmd(match access {
        Access::Write(KeyCreation::Allowed) => "TOLLGATE.STEP",
        Access::Write(KeyCreation::Denied) => "TOLLGATE.TIGHT",
        Access::Read(_) => "TOLLGATE.LOOK",
    });
    call.arg(&command.argument).arg(&command.keys);
    call
}

/// Returns whether the error means that the server has not loaded the module.
pub(crate) fn is_without_module(error: &RedisError) -> bool {
    detail(error).contains("unknown command") && detail(error).contains("TOLLGATE.")
}

/// Returns the server's reply to `command`, with an error reply as an error.
pub(crate) async fn ask(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> RedisResult<Value> {
    connection.send_packed_command(command).await?.extract_error()
}

/// Returns whether the error means that the server does not have the step.
pub(crate) fn is_unloaded(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT") || detail(error).contains("Function not found")
}

/// Returns whether the error means that the server is out of memory. Before 7.0 the error of a
/// script is contained in another one.
pub(crate) fn is_out_of_memory(error: &RedisError) -> bool {
    error.code() == Some("OOM") || detail(error).contains("OOM command not allowed")
}

fn detail(error: &RedisError) -> &str {
    error.detail().unwrap_or_default()
}
