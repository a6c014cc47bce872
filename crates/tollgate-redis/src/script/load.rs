//! Loads the step into a server.

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult};

use super::{
    Access, ReadVerb, RuntimeChoice, Step, StepRuntime, detail, is_denied, is_out_of_memory,
    is_unloaded, query,
};
use crate::command::{Command, KeyCreation};

/// A text that is neither a valid library nor a valid script. It is sent to find out whether the
/// user may load code, and cannot be loaded.
const NO_STEP: &str = "no step";

/// How the step runs in a server, and the commands for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuntimeInfo {
    /// How the server runs the step: as a module, a function or a script.
    pub(crate) runs: StepRuntime,
    /// The commands that run the step for jobs that only read.
    pub(crate) reads: ReadVerb,
}

impl Step {
    /// Determines how the step runs in the server, and loads the step if it is missing.
    ///
    /// # Errors
    /// The server's last error, if the step can run in no way that `choice` permits.
    pub(crate) async fn load(
        &self,
        connection: &mut MultiplexedConnection,
        choice: RuntimeChoice,
    ) -> RedisResult<RuntimeInfo> {
        if let Some(runs) = self.find_module(connection, choice).await? {
            return Ok(RuntimeInfo { runs, reads: ReadVerb::ReadOnly });
        }
        let runs = match choice {
            RuntimeChoice::Script | RuntimeChoice::Tables => StepRuntime::Script,
            RuntimeChoice::Function => {
                self.load_function(connection).await.map(|()| StepRuntime::Function)?
            }
            RuntimeChoice::Best => match self.load_function(connection).await {
                Ok(()) => StepRuntime::Function,
                Err(error) if is_connection_error(&error) => return Err(error),
                Err(_) => StepRuntime::Script,
            },
        };
        if runs == StepRuntime::Script {
            self.load_script(connection, Access::Write(KeyCreation::Allowed)).await?;
        }
        let access = Access::Read(ReadVerb::ReadOnly);
        let reads = match self.try_out(connection, runs, access).await {
            Ok(()) => ReadVerb::ReadOnly,
            Err(error) if is_connection_error(&error) => return Err(error),
            Err(_) => ReadVerb::Plain,
        };
        Ok(RuntimeInfo { runs, reads })
    }

    /// Determines how a replica runs the step. `primary` is how the step runs in the replica's
    /// primary, or `None` if that is not known. A replica receives functions only from its primary.
    /// Scripts are loaded into a replica as into any other server.
    ///
    /// # Errors
    /// The server's last error, if the step can run in no way that `choice` permits. The same error
    /// is returned if the primary's function has not arrived yet.
    pub(crate) async fn find(
        &self,
        connection: &mut MultiplexedConnection,
        choice: RuntimeChoice,
        primary: Option<StepRuntime>,
    ) -> RedisResult<RuntimeInfo> {
        if let Some(runs) = self.find_module(connection, choice).await? {
            return Ok(RuntimeInfo { runs, reads: ReadVerb::ReadOnly });
        }
        if choice != RuntimeChoice::Script {
            let may_arrive = matches!(primary, None | Some(StepRuntime::Function));
            match self.find_function(connection).await {
                Ok(reads) => return Ok(RuntimeInfo { runs: StepRuntime::Function, reads }),
                Err(error) if is_connection_error(&error) => return Err(error),
                Err(error) if is_unloaded(&error) && may_arrive => return Err(error),
                Err(error) if choice == RuntimeChoice::Function => return Err(error),
                Err(_) => {}
            }
        }
        let mut reads = ReadVerb::ReadOnly;
        let mut found = self.load_script(connection, Access::Read(reads)).await;
        if found.as_ref().is_err_and(|error| !is_connection_error(error)) {
            reads = ReadVerb::Plain;
            found = self.load_script(connection, Access::Read(reads)).await;
        }
        found.map(|()| RuntimeInfo { runs: StepRuntime::Script, reads })
    }

    /// Determines how the step runs in the server, or would run once a node has loaded the step.
    /// Loads nothing.
    ///
    /// # Errors
    /// The server's last error, if the step can run in no way that `choice` permits.
    pub(crate) async fn predict(
        &self,
        connection: &mut MultiplexedConnection,
        choice: RuntimeChoice,
    ) -> RedisResult<RuntimeInfo> {
        let ways = |runs| RuntimeInfo { runs, reads: ReadVerb::Plain };
        if let Some(runs) = self.find_module(connection, choice).await? {
            return Ok(ways(runs));
        }
        if choice != RuntimeChoice::Script {
            match self.could_run(connection, StepRuntime::Function).await {
                Ok(()) => return Ok(ways(StepRuntime::Function)),
                Err(error) if choice == RuntimeChoice::Function || is_connection_error(&error) => {
                    return Err(error);
                }
                Err(_) => {}
            }
        }
        self.could_run(connection, StepRuntime::Script).await.map(|()| ways(StepRuntime::Script))
    }

    /// Returns how the step runs in the server's module, if `choice` permits the module and the
    /// server has loaded the module.
    ///
    /// # Errors
    /// The server's last error, if `choice` permits only the module or if the server cannot answer
    /// now.
    async fn find_module(
        &self,
        connection: &mut MultiplexedConnection,
        choice: RuntimeChoice,
    ) -> RedisResult<Option<StepRuntime>> {
        let runs = match choice {
            RuntimeChoice::Best => StepRuntime::Module,
            RuntimeChoice::Tables => StepRuntime::Tables,
            RuntimeChoice::Function | RuntimeChoice::Script => return Ok(None),
        };
        match self.try_out(connection, runs, Access::Read(ReadVerb::ReadOnly)).await {
            Ok(()) => Ok(Some(runs)),
            Err(error) if choice == RuntimeChoice::Tables || is_connection_error(&error) => {
                Err(error)
            }
            Err(_) => Ok(None),
        }
    }

    /// Checks whether the server has the step as `runs` requires, or whether the user may load the
    /// step. To check the permission, sends a text that is neither a library nor a script. The
    /// server rejects either the user or the text.
    async fn could_run(
        &self,
        connection: &mut MultiplexedConnection,
        runs: StepRuntime,
    ) -> RedisResult<()> {
        let missing =
            match self.try_out(connection, runs, Access::Write(KeyCreation::Allowed)).await {
                Err(error) if is_unloaded(&error) => error,
                Err(error) if is_out_of_memory(&error) => return Ok(()),
                other => return other,
            };
        let container = match runs {
            StepRuntime::Function => "FUNCTION",
            StepRuntime::Module | StepRuntime::Tables | StepRuntime::Script => "SCRIPT",
        };
        match query(connection, redis::cmd(container).arg("LOAD").arg(NO_STEP)).await {
            Err(error) if is_denied(&error) => Err(missing),
            Err(error) if is_connection_error(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Calls the function of the step, and loads the function if it is missing. A user that may not
    /// load libraries can still call a function that an administrator has loaded.
    async fn load_function(&self, connection: &mut MultiplexedConnection) -> RedisResult<()> {
        let access = Access::Write(KeyCreation::Allowed);
        let missing = match self.try_out(connection, StepRuntime::Function, access).await {
            Ok(()) => return Ok(()),
            Err(error) if is_unloaded(&error) => error,
            // The function exists. While the server is out of memory, the function is called by its
            // other name.
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
        match self.try_out(connection, StepRuntime::Function, access(ReadVerb::ReadOnly)).await {
            Err(error) if is_denied(&error) => {
                let plain = access(ReadVerb::Plain);
                self.try_out(connection, StepRuntime::Function, plain)
                    .await
                    .map(|()| ReadVerb::Plain)
            }
            found => found.map(|()| ReadVerb::ReadOnly),
        }
    }

    async fn load_script(
        &self,
        connection: &mut MultiplexedConnection,
        access: Access,
    ) -> RedisResult<()> {
        match self.try_out(connection, StepRuntime::Script, access).await {
            Err(error) if is_unloaded(&error) => {}
            other => return other,
        }
        query(connection, redis::cmd("SCRIPT").arg("LOAD").arg(&self.script)).await.map(drop)
    }

    /// Executes a command without jobs, to check that the server has the step.
    async fn try_out(
        &self,
        connection: &mut MultiplexedConnection,
        runs: StepRuntime,
        access: Access,
    ) -> RedisResult<()> {
        let command = Command::new(&[], KeyCreation::Allowed, None, runs.layout());
        query(connection, &self.call(runs, access, &command)).await.map(drop)
    }
}

async fn load_library(connection: &mut MultiplexedConnection, library: &str) -> RedisResult<()> {
    match query(connection, redis::cmd("FUNCTION").arg("LOAD").arg(library)).await {
        Ok(_) => Ok(()),
        // Another node has loaded the function first, with the same source under the same name.
        Err(error) if detail(&error).contains("already exists") => Ok(()),
        Err(error) => Err(error),
    }
}

/// Returns true if `error` does not show whether the server has the step: no answer arrived, or the
/// server cannot answer now.
fn is_connection_error(error: &RedisError) -> bool {
    !matches!(error.code(), Some("ERR" | "NOPERM" | "NOSCRIPT" | "OOM"))
}
