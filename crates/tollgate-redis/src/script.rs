//! The source of the step, for its use as a function or a script in a server.

mod load;
mod replace;

use std::fmt;
use std::sync::LazyLock;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Script, Value};

pub(crate) use load::RuntimeInfo;

use crate::command::{Command, KeyCreation, Layout};

/// How the step runs in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRuntime {
    /// The server module `tollgate`, with the same keys and values as the function and the script.
    Module,
    /// The server module `tollgate`, with tables that many subjects share.
    Tables,
    /// A function, which the server stores and replicates. Redis 7.0 and later and Valkey support
    /// functions.
    Function,
    /// A script. The server may drop the script from its cache, and then the script is loaded
    /// again.
    Script,
}

impl StepRuntime {
    /// Returns where the step stores state if it runs in this way.
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

/// The ways in which the step may run in a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeChoice {
    /// The module if the server has loaded the module. On other servers, a function if the server
    /// supports functions, and a script if not. The module, the function and the script use the
    /// same keys and values.
    #[default]
    Best,
    /// Only the module, with tables that many subjects share. A server without the module is not
    /// used. Functions and scripts cannot read the state in tables. In a Redis Cluster, this choice
    /// is the same as `Best`.
    Tables,
    /// Only a function. A server is not used if it has no functions, or if it does not permit the
    /// user to call functions.
    Function,
    /// Only a script, even if the server supports functions.
    Script,
}

/// The commands that run the step for jobs that only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadVerb {
    /// `FCALL_RO` or `EVALSHA_RO`, which Redis 7.0 introduced. They are used if the user may call
    /// them.
    ReadOnly,
    /// `FCALL` or `EVALSHA`, which also run the step for jobs that write.
    Plain,
}

/// Whether a call may write to the server's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The call may change keys. The value determines whether the call may also create keys.
    Write(KeyCreation),
    /// The call only reads. Such a call also runs on replicas, and on servers without free memory
    /// or disk space.
    Read(ReadVerb),
}

/// The step of this version of Tollgate.
pub(crate) static STEP: LazyLock<Step> = LazyLock::new(Step::new);

/// Returns the library of functions that nodes of this version call. The text is the argument of
/// `FUNCTION LOAD`.
///
/// A node loads the library itself if its user has the permission. Without the permission, an
/// administrator must load the library into each primary before nodes of this version start. The
/// libraries of other versions stay in the server.
#[must_use]
pub fn function_library() -> &'static str {
    &STEP.library
}

/// The source texts of the step, and its names in servers.
pub(crate) struct Step {
    /// The name of the library and of its first function. The name depends on the source, so nodes
    /// of two versions never replace each other's function.
    name: String,
    /// The name of the function that is called while the server is out of memory.
    tight_name: String,
    /// The name of the function that does not write.
    look_name: String,
    /// The name of the function that replaces a document that nodes share.
    replace_name: String,
    library: String,
    script: String,
    script_hash: String,
}

/// The source of the step. Each file comes after the files that it depends on.
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
        let hashed = Script::new(&[SOURCE, replace::SOURCE].concat());
        let name = format!("tollgate_v1_{}", &hashed.get_hash()[..8]);
        let (tight_name, look_name) = (format!("{name}_tight"), format!("{name}_look"));
        let replace_name = format!("{name}_replace");
        // If the server is out of memory, it rejects a function without flags before the function
        // runs. In that case, the second function is called, which creates no keys. The third
        // function runs on replicas. All three functions run the same step, because jobs that only
        // read change nothing.
        let library = format!(
            "#!lua name={name}\n{SOURCE}\n\
             redis.register_function('{name}', run)\n\
             redis.register_function{{\
             function_name='{tight_name}', callback=run, flags={{'allow-oom'}}}}\n\
             redis.register_function{{\
             function_name='{look_name}', callback=run, flags={{'no-writes'}}}}\n\
             {}\
             redis.register_function('{replace_name}', replace)\n",
            replace::SOURCE
        );
        let script = format!("{SOURCE}\nreturn run(KEYS, ARGV)\n");
        let script_hash = Script::new(&script).get_hash().to_owned();
        Self { name, tight_name, look_name, replace_name, library, script, script_hash }
    }

    /// Returns the Redis command that makes the step execute `command`. `runs` and `access` select
    /// the form of the step, and whether the step may write.
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

/// Returns the call that makes the module execute `command`.
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

/// Sends `command` and returns the server's reply. An error reply is returned as an error.
pub(crate) async fn query(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> RedisResult<Value> {
    connection.send_packed_command(command).await?.extract_error()
}

/// Returns whether the error means that the server does not have the step.
pub(crate) fn is_unloaded(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT") || detail(error).contains("Function not found")
}

/// Returns whether the error means that the user may not execute the command.
pub(crate) fn is_denied(error: &RedisError) -> bool {
    error.code() == Some("NOPERM")
}

/// Returns whether the error means that the server is out of memory. Before Redis 7.0, the server
/// reports this error of a script inside another error.
pub(crate) fn is_out_of_memory(error: &RedisError) -> bool {
    error.code() == Some("OOM") || detail(error).contains("OOM command not allowed")
}

fn detail(error: &RedisError) -> &str {
    error.detail().unwrap_or_default()
}
