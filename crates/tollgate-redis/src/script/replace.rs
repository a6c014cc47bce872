//! Replaces a document that nodes share, in one atomic step of the server.

use std::sync::LazyLock;

use redis::aio::MultiplexedConnection;
use redis::{RedisError, RedisResult, Script, from_redis_value};

use super::{Step, detail, is_denied, is_unloaded, query};

/// The source of the function that replaces a document.
pub(super) const SOURCE: &str = include_str!("replace.lua");

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new(&format!("{SOURCE}\nreturn replace(KEYS, ARGV)\n")));

impl Step {
    /// Replaces the values of `keys`, the version and the content of a document, if the stored
    /// version is the first of `arguments`. The other arguments are the new version, the new
    /// content, and the time to live in milliseconds. Returns whether the values were replaced.
    ///
    /// Calls a function of the library, which a user may call without the permission to load code.
    /// On a server without the library, runs a script. Redis 6.2 has no functions, and nodes load
    /// no library into a server that runs the step in the module.
    ///
    /// # Errors
    /// The server's error. The error has the code `NOPERM` if the user may not run the script, and
    /// either may not call functions or the server lacks the library.
    pub(crate) async fn replace(
        &self,
        connection: &mut MultiplexedConnection,
        keys: [&str; 2],
        arguments: [&[u8]; 4],
    ) -> RedisResult<bool> {
        let mut call = redis::cmd("FCALL");
        call.arg(&self.replace_name).arg(keys.len()).arg(&keys).arg(&arguments);
        let replaced: u64 = match query(connection, &call).await {
            Err(error) if is_without_function(&error) => {
                let mut call = SCRIPT.prepare_invoke();
                for key in keys {
                    call.key(key);
                }
                for argument in arguments {
                    call.arg(argument);
                }
                call.invoke_async(connection).await?
            }
            reply => from_redis_value(reply?)?,
        };
        Ok(replaced == 1)
    }
}

/// Returns whether the server did not run the function: it lacks functions or the library, or the
/// user may not call functions.
fn is_without_function(error: &RedisError) -> bool {
    is_unloaded(error) || is_denied(error) || detail(error).contains("unknown command")
}
