//! Servers that have loaded the module, and stores that use these servers.

use redis::aio::MultiplexedConnection;
use tollgate_conformance::PlainHash;
use tollgate_redis::{Keys, Redis, RuntimeChoice, StepRuntime};

use crate::kit::{Server, Version, module_file};

/// The two layouts of the module.
pub(crate) const LAYOUTS: [(RuntimeChoice, StepRuntime); 2] =
    [(RuntimeChoice::Best, StepRuntime::Module), (RuntimeChoice::Tables, StepRuntime::Tables)];

/// Starts a server that loads the module. `arguments` are further arguments of the server.
pub(crate) async fn start(version: Version, arguments: &[&str]) -> Server {
    let module = module_file();
    let arguments = [&["--loadmodule", &module], arguments].concat();
    Server::start_version(version, &arguments).await
}

/// Returns the argument that permits `DEBUG`. Redis 6.2 always permits `DEBUG` and does not know
/// the argument.
pub(crate) fn debugging(version: Version) -> &'static [&'static str] {
    if version == Version::Redis62 { &[] } else { &["--enable-debug-command", "yes"] }
}

pub(crate) async fn store(server: &Server, choice: RuntimeChoice) -> Redis {
    let connection = server.connect().await;
    Redis::new(connection, Keys::new(PlainHash), choice).await.expect("the step is found")
}

/// Returns every key with its value. All values are strings.
pub(crate) async fn dump(connection: &mut MultiplexedConnection) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = redis::cmd("KEYS").arg("*").query_async(connection).await.unwrap();
    names.sort();
    let mut dumps = Vec::with_capacity(names.len());
    for name in names {
        let bytes: Vec<u8> = redis::cmd("GET").arg(&name).query_async(connection).await.unwrap();
        dumps.push((name, bytes));
    }
    dumps
}
