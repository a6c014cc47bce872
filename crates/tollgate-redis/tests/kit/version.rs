//! The server versions that the store supports.

use std::path::{Path, PathBuf};

/// A server product and its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// Redis 6.2, which does not support functions.
    Redis62,
    /// The Redis of the system's package: 7.0 on Debian 12.
    #[default]
    System,
    /// Redis 8.2.
    Redis82,
    /// Valkey 9.1.
    Valkey91,
}

impl Version {
    /// Returns the program to start. If the program is not installed, the test fails. No test is
    /// skipped.
    pub fn program(self) -> PathBuf {
        let name = match self {
            Self::System => return "redis-server".into(),
            Self::Redis62 => "redis-6.2",
            Self::Redis82 => "redis-8.2",
            Self::Valkey91 => "valkey-9.1",
        };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers").join(name)
    }

    /// Returns whether the server supports functions.
    pub fn has_functions(self) -> bool {
        self != Self::Redis62
    }

    /// Returns the words of `ACL SETUSER` for the user that the deployment files contain for this
    /// version. The user's password is `password`.
    pub fn shipped_user(self) -> Vec<String> {
        Self::user_below(match self {
            Self::Redis62 => "# Redis 6.2",
            Self::System | Self::Redis82 | Self::Valkey91 => "# Redis 7.0 and later, and Valkey",
        })
    }

    /// Returns the words for the first user below the line of the deployment file that starts with
    /// `heading`, as [`Self::shipped_user`] does.
    pub fn user_below(heading: &str) -> Vec<String> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/redis-acl.txt");
        let text = std::fs::read_to_string(file).expect("the shipped users");
        let mut below = text.lines().skip_while(|line| !line.starts_with(heading));
        let line = below.find(|line| line.starts_with("user ")).expect("a user below the heading");
        line.split(' ').skip(1).map(str::to_owned).collect()
    }
}

/// Defines a test for every version and each of these async functions.
macro_rules! on_every_version {
    ($($test:ident)*) => { $(
        mod $test {
            use crate::kit::Version;

            #[tokio::test]
            async fn redis_6_2() {
                super::$test(Version::Redis62).await;
            }

            #[tokio::test]
            async fn redis_of_the_system() {
                super::$test(Version::System).await;
            }

            #[tokio::test]
            async fn redis_8_2() {
                super::$test(Version::Redis82).await;
            }

            #[tokio::test]
            async fn valkey_9_1() {
                super::$test(Version::Valkey91).await;
            }
        }
    )* };
}

pub(crate) use on_every_version;
