//! The step's source, as a function of the server's and as a script.

use std::fmt;
use std::sync::LazyLock;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, RedisResult, Script, Value};

use crate::command::{Command, Room};

/// How the step runs in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// As a function, which the server keeps and replicates: Redis 7.0 and later, and Valkey.
    Function,
    /// As a script, which it may forget and is then given again.
    Script,
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function => "function",
            Self::Script => "script",
        })
    }
}

/// Which ways of running the step are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// A function where the server has them, else a script.
    #[default]
    Best,
    /// A script, whatever the server has.
    Script,
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
    include_str!("step/cells.lua"),
    include_str!("step/decide.lua"),
    include_str!("step/limits.lua"),
    include_str!("step/jobs.lua"),
    include_str!("step/keys.lua"),
    include_str!("step/main.lua"),
);

impl Step {
    fn new() -> Self {
        let hash = Script::new(SOURCE).get_hash()[..8].to_owned();
        let name = format!("tollgate_v1_{hash}");
        let tight_name = format!("{name}_tight");
        // Without flags the server refuses the function when it is out of memory, before it ran;
        // then the other one is called, which makes no keys.
        let library = format!(
            "#!lua name={name}\n{SOURCE}\n\
             redis.register_function('{name}', run)\n\
             redis.register_function{{\
             function_name='{tight_name}', callback=run, flags={{'allow-oom'}}}}\n"
        );
        let script = format!("{SOURCE}\nreturn run(KEYS, ARGV)\n");
        let script_hash = Script::new(&script).get_hash().to_owned();
        Self { name, tight_name, library, script, script_hash }
    }

    /// The call that carries `command` out.
    pub(crate) fn call(&self, runs: Runs, room: Room, command: &Command<'_>) -> Cmd {
        let (verb, step) = match (runs, room) {
            (Runs::Function, Room::Open) => ("FCALL", &self.name),
            (Runs::Function, Room::Tight) => ("FCALL", &self.tight_name),
            (Runs::Script, _) => ("EVALSHA", &self.script_hash),
        };
        let mut call = redis::cmd(verb);
        call.arg(step);
        call.arg(command.keys.len()).arg(&command.keys).arg(&command.argument);
        call
    }

    /// Finds out how the step runs in the server, and gives it to the server where it is missing.
    ///
    /// # Errors
    /// The last reply, where neither way is open.
    pub(crate) async fn load(
        &self,
        connection: &mut MultiplexedConnection,
        choice: Choice,
    ) -> RedisResult<Runs> {
        if choice == Choice::Script {
            return self.load_script(connection).await.map(|()| Runs::Script);
        }
        match self.load_function(connection).await {
            Ok(()) => Ok(Runs::Function),
            Err(error) if tells_of_the_connection(&error) => Err(error),
            Err(_) => self.load_script(connection).await.map(|()| Runs::Script),
        }
    }

    /// Calls the function, and loads it where it is missing: a user that may not load libraries
    /// can still call one that an administrator loaded.
    async fn load_function(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let missing = match self.try_out(connection, Runs::Function).await {
            Ok(()) => return Ok(()),
            Err(error) if is_unloaded(&error) => error,
            // It is there, and will be called by its other name.
            Err(error) if is_out_of_memory(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        match load_library(connection, &self.library).await {
            Err(error) if is_denied(&error) => Err(missing),
            other => other,
        }
    }

    async fn load_script(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        match self.try_out(connection, Runs::Script).await {
            Err(error) if is_unloaded(&error) => {}
            other => return other,
        }
        ask(connection, redis::cmd("SCRIPT").arg("LOAD").arg(&self.script)).await.map(drop)
    }

    /// Carries an empty command out.
    async fn try_out(&self, connection: &mut MultiplexedConnection, runs: Runs) -> RedisResult<()> {
        let command = Command::new(&[], Room::Open, None);
        let call = self.call(runs, Room::Open, &command);
        ask(connection, &call).await.map(drop)
    }
}

async fn load_library(connection: &mut MultiplexedConnection, library: &str) -> RedisResult<()> {
    match ask(connection, redis::cmd("FUNCTION").arg("LOAD").arg(library)).await {
        Ok(_) => Ok(()),
        // Another node was faster, with the same source under the same name.
        Err(error) if detail(&error).contains("already exists") => Ok(()),
        Err(error) => Err(error),
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

fn is_denied(error: &RedisError) -> bool {
    error.code() == Some("NOPERM")
}

/// Whether an error says nothing of the step: no answer came, or none comes from this server now.
fn tells_of_the_connection(error: &RedisError) -> bool {
    !matches!(error.code(), Some("ERR" | "NOPERM" | "OOM"))
}

fn detail(error: &RedisError) -> &str {
    error.detail().unwrap_or_default()
}
