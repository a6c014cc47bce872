//! The step's source, as a function of the server's and as a script.

mod load;

use std::fmt;
use std::sync::LazyLock;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Script, Value};

pub(crate) use load::RuntimeInfo;

use crate::command::{Command, KeyCreation};

/// How the step runs in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepRuntime {
    /// As a function, which the server keeps and replicates: Redis 7.0 and later, and Valkey.
    Function,
    /// As a script, which it may forget and is then given again.
    Script,
}

impl fmt::Display for StepRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function => "function",
            Self::Script => "script",
        })
    }
}

/// Which ways of running the step are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeChoice {
    /// A function where the server has them, else a script.
    #[default]
    Best,
    /// A function: a server that has none, or does not let the user call it, is not used.
    Function,
    /// A script, whatever the server has.
    Script,
}

/// Which of the server's commands run the step where it only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadVerb {
    /// `FCALL_RO` or `EVALSHA_RO`: since Redis 7.0, for users that may call them.
    ReadOnly,
    /// Those that may write, too.
    Plain,
}

/// What a call may do to the server's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Change them, as far as there is room.
    Write(KeyCreation),
    /// Read them: on a replica, too, and whatever the state of the server's memory and disk.
    Read(ReadVerb),
}

/// The one step of this version.
pub(crate) static STEP: LazyLock<Step> = LazyLock::new(Step::new);

/// The step's texts and names.
pub(crate) struct Step {
    /// Of the library and of its function: another source has another name, so that nodes of two
    /// versions never replace each other's.
    name: String,
    /// Of the function that runs when the server is out of memory.
    tight_name: String,
    /// Of the function that does not write.
    look_name: String,
    library: String,
    script: String,
    script_hash: String,
}

/// In the order in which they use each other.
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
        // Without flags the server refuses the function when it is out of memory, before it ran;
        // then the second one is called, which makes no keys. The third runs on replicas: jobs that
        // only read change nothing, so it is the same step.
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

    /// The call that carries `command` out.
    pub(crate) fn call(&self, runs: StepRuntime, access: Access, command: &Command<'_>) -> Cmd {
        let (verb, step) = match (runs, access) {
            (StepRuntime::Function, Access::Write(KeyCreation::Allowed)) => ("FCALL", &self.name),
            (StepRuntime::Function, Access::Write(KeyCreation::Denied)) => {
                ("FCALL", &self.tight_name)
            }
            (StepRuntime::Function, Access::Read(ReadVerb::ReadOnly)) => {
                ("FCALL_RO", &self.look_name)
            }
            (StepRuntime::Function, Access::Read(ReadVerb::Plain)) => ("FCALL", &self.look_name),
            (StepRuntime::Script, Access::Read(ReadVerb::ReadOnly)) => {
                ("EVALSHA_RO", &self.script_hash)
            }
            (StepRuntime::Script, Access::Write(_) | Access::Read(ReadVerb::Plain)) => {
                ("EVALSHA", &self.script_hash)
            }
        };
        let mut call = redis::cmd(verb);
        call.arg(step);
        call.arg(command.keys.len()).arg(&command.keys).arg(&command.argument);
        call
    }
}

/// The server's reply to `command`, or its error reply as an error.
pub(crate) async fn ask(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> RedisResult<Value> {
    connection.send_packed_command(command).await?.extract_error()
}

/// Whether the server lost the step, or never had it.
pub(crate) fn is_unloaded(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT") || detail(error).contains("Function not found")
}

/// Whether the server refused to grow. Before 7.0 a script's error is told in the middle of another.
pub(crate) fn is_out_of_memory(error: &RedisError) -> bool {
    error.code() == Some("OOM") || detail(error).contains("OOM command not allowed")
}

fn detail(error: &RedisError) -> &str {
    error.detail().unwrap_or_default()
}
