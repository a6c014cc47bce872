//! How a server comes by the step, and how it runs there.

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult};

use super::{Access, Choice, ReadVerb, Runs, Step, ask, detail, is_out_of_memory, is_unloaded};
use crate::command::{Command, Room};

/// What no server takes for a library, nor for a script.
const NO_STEP: &str = "no step";

/// How the step runs in a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ways {
    /// Where it is kept.
    pub(crate) runs: Runs,
    /// How it is called where it only reads.
    pub(crate) reads: ReadVerb,
}

impl Step {
    /// Finds out how the step runs in the server, and gives it to the server where it is missing.
    ///
    /// # Errors
    /// The last reply, where no way is open.
    pub(crate) async fn load(
        &self,
        connection: &mut MultiplexedConnection,
        choice: Choice,
    ) -> RedisResult<Ways> {
        let runs = match choice {
            Choice::Script => Runs::Script,
            Choice::Function => self.load_function(connection).await.map(|()| Runs::Function)?,
            Choice::Best => match self.load_function(connection).await {
                Ok(()) => Runs::Function,
                Err(error) if tells_of_the_connection(&error) => return Err(error),
                Err(_) => Runs::Script,
            },
        };
        if runs == Runs::Script {
            self.load_script(connection, Access::Write(Room::Open)).await?;
        }
        let access = Access::Read(ReadVerb::ReadOnly);
        let reads = match self.try_out(connection, runs, access).await {
            Ok(()) => ReadVerb::ReadOnly,
            Err(error) if tells_of_the_connection(&error) => return Err(error),
            Err(_) => ReadVerb::Plain,
        };
        Ok(Ways { runs, reads })
    }

    /// Finds out how the step runs in a replica. Functions reach it from its primary alone, which
    /// runs the step as `primary` says, if that is known; scripts it is given like any server.
    ///
    /// # Errors
    /// The last reply: also while the primary's function has not arrived.
    pub(crate) async fn find(
        &self,
        connection: &mut MultiplexedConnection,
        choice: Choice,
        primary: Option<Runs>,
    ) -> RedisResult<Ways> {
        if choice != Choice::Script {
            match self.find_function(connection).await {
                Ok(reads) => return Ok(Ways { runs: Runs::Function, reads }),
                Err(error) if tells_of_the_connection(&error) => return Err(error),
                Err(error) if is_unloaded(&error) && primary != Some(Runs::Script) => {
                    return Err(error);
                }
                Err(error) if choice == Choice::Function => return Err(error),
                Err(_) => {}
            }
        }
        let mut reads = ReadVerb::ReadOnly;
        let mut found = self.load_script(connection, Access::Read(reads)).await;
        if found.as_ref().is_err_and(|error| !tells_of_the_connection(error)) {
            reads = ReadVerb::Plain;
            found = self.load_script(connection, Access::Read(reads)).await;
        }
        found.map(|()| Ways { runs: Runs::Script, reads })
    }

    /// Finds out how the step runs in the server, or would once a node gave it to the server, and
    /// gives it nothing.
    ///
    /// # Errors
    /// The last reply, where no way is open.
    pub(crate) async fn foresee(
        &self,
        connection: &mut MultiplexedConnection,
        choice: Choice,
    ) -> RedisResult<Ways> {
        let ways = |runs| Ways { runs, reads: ReadVerb::Plain };
        if choice != Choice::Script {
            match self.could_run(connection, Runs::Function).await {
                Ok(()) => return Ok(ways(Runs::Function)),
                Err(error) if choice == Choice::Function || tells_of_the_connection(&error) => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        self.could_run(connection, Runs::Script).await.map(|()| ways(Runs::Script))
    }

    /// Whether it runs so, or the user may give it to the server. That is asked with a text that is
    /// neither a library nor a script: the server refuses the user, or the text.
    async fn could_run(
        &self,
        connection: &mut MultiplexedConnection,
        runs: Runs,
    ) -> RedisResult<()> {
        let missing = match self.try_out(connection, runs, Access::Write(Room::Open)).await {
            Err(error) if is_unloaded(&error) => error,
            Err(error) if is_out_of_memory(&error) => return Ok(()),
            other => return other,
        };
        let gives = match runs {
            Runs::Function => "FUNCTION",
            Runs::Script => "SCRIPT",
        };
        match ask(connection, redis::cmd(gives).arg("LOAD").arg(NO_STEP)).await {
            Err(error) if is_denied(&error) => Err(missing),
            Err(error) if tells_of_the_connection(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Calls the function, and loads it where it is missing: a user that may not load libraries
    /// can still call one that an administrator loaded.
    async fn load_function(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let access = Access::Write(Room::Open);
        let missing = match self.try_out(connection, Runs::Function, access).await {
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

    async fn find_function(&self, connection: &mut MultiplexedConnection) -> RedisResult<ReadVerb> {
        let access = |reads| Access::Read(reads);
        match self.try_out(connection, Runs::Function, access(ReadVerb::ReadOnly)).await {
            Err(error) if is_denied(&error) => {
                let plain = access(ReadVerb::Plain);
                self.try_out(connection, Runs::Function, plain).await.map(|()| ReadVerb::Plain)
            }
            found => found.map(|()| ReadVerb::ReadOnly),
        }
    }

    async fn load_script(
        &self,
        connection: &mut MultiplexedConnection,
        access: Access,
    ) -> RedisResult<()> {
        match self.try_out(connection, Runs::Script, access).await {
            Err(error) if is_unloaded(&error) => {}
            other => return other,
        }
        ask(connection, redis::cmd("SCRIPT").arg("LOAD").arg(&self.script)).await.map(drop)
    }

    /// Carries an empty command out.
    async fn try_out(
        &self,
        connection: &mut MultiplexedConnection,
        runs: Runs,
        access: Access,
    ) -> RedisResult<()> {
        let command = Command::new(&[], Room::Open, None);
        ask(connection, &self.call(runs, access, &command)).await.map(drop)
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

fn is_denied(error: &RedisError) -> bool {
    error.code() == Some("NOPERM")
}

/// Whether an error says nothing of the step: no answer came, or none comes from this server now.
fn tells_of_the_connection(error: &RedisError) -> bool {
    !matches!(error.code(), Some("ERR" | "NOPERM" | "NOSCRIPT" | "OOM"))
}
