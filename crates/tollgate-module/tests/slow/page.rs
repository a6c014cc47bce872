//! Runs the commands of `docs/module.md`.

use tollgate_conformance::{PlainHash, check};
use tollgate_redis::{Keys, Redis, RuntimeChoice, StepRuntime};

use crate::kit::{Version, module_file};
use crate::loaded::start;

const PAGE: &str = include_str!("../../../../docs/module.md");

/// Returns the lines of each `sh` block of the page.
fn commands() -> Vec<Vec<&'static str>> {
    let blocks = PAGE.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).map(|line| line.split(' ').collect()).collect()
}

/// The commands of the page build and load the module. After that, a user with the listed
/// permissions can make decisions with the module.
#[tokio::test]
async fn its_commands_give_a_user_the_module() {
    let version = Version::System;
    let server = start(version, &[]).await;
    let user = version.shipped_user();
    let user: Vec<_> = user.iter().map(String::as_str).collect();
    server.execute(&[&["ACL", "SETUSER"], &user[..]].concat()).await;
    let runtime = async || {
        let connection = server.connect_as("tollgate", "password").await;
        let store = Redis::new(connection, Keys::new(PlainHash), RuntimeChoice::Best).await;
        store.expect("the step is found")
    };
    assert_eq!(runtime().await.runtime(), StepRuntime::Function, "without the permissions");
    let mut found = 0;
    for command in commands() {
        match command[..] {
            ["cargo", "build", "--release", "-p", package] => {
                assert_eq!(package, env!("CARGO_PKG_NAME"));
            }
            ["redis-server", "--loadmodule", path] => {
                let file = |path: &str| path.rsplit('/').next().map(str::to_owned);
                assert_eq!(file(path), file(&module_file()));
            }
            ["redis-cli", ref words @ ..] => {
                server.execute(words).await;
            }
            _ => panic!("no test runs {command:?}"),
        }
        found += 1;
    }
    assert_eq!(found, 3);
    let store = runtime().await;
    assert_eq!(store.runtime(), StepRuntime::Module);
    check(&store, "a user of its own").await;
}
