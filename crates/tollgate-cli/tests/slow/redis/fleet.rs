//! Two shards, each with a primary and a replica, and policies for them.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::kit::{QUICK, Server, module_file};
use crate::support::world::{Proxy, policy};

/// The shards' names.
pub(crate) const SHARDS: [&str; 2] = ["a", "b"];

/// The form in which the step runs in the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The step runs as a function.
    Function,
    /// The step runs in the module, with the same keys as the functions.
    Module,
    /// The step runs in the module, with tables.
    Tables,
}

impl Form {
    /// Returns the words by which the log describes this form.
    pub(crate) const fn logged(self) -> &'static str {
        match self {
            Self::Function => "runs as a function ",
            Self::Module => "runs as a module ",
            Self::Tables => "runs as a module with tables ",
        }
    }

    /// Starts a server that supports this form.
    async fn server(self) -> Server {
        let module = match self {
            Self::Function => Vec::new(),
            Self::Module | Self::Tables => vec!["--loadmodule".to_owned(), module_file()],
        };
        let module: Vec<_> = module.iter().map(String::as_str).collect();
        Server::start_with(&[&QUICK, &module[..]].concat()).await
    }
}

/// Defines one test of each named async function for each form.
macro_rules! in_every_form {
    ($($test:ident)*) => { $(
        mod $test {
            use crate::redis::fleet::Form;

            #[tokio::test]
            async fn as_a_function() {
                super::$test(Form::Function).await;
            }

            #[tokio::test]
            async fn in_the_module() {
                super::$test(Form::Module).await;
            }

            #[tokio::test]
            async fn in_the_module_with_tables() {
                super::$test(Form::Tables).await;
            }
        }
    )* };
}
pub(crate) use in_every_form;

/// Two shards. Their servers are stopped when this value is dropped.
pub(crate) struct Fleet {
    pub(crate) primaries: [Server; 2],
    pub(crate) replicas: [Server; 2],
    form: Form,
    folder: TempDir,
}

impl Fleet {
    /// Starts the servers and waits until the replicas are in sync.
    pub(crate) async fn start() -> Self {
        Self::start_in(Form::Function).await
    }

    /// Works like [`start`](Self::start), with servers that support `form`.
    pub(crate) async fn start_in(form: Form) -> Self {
        let primaries = [form.server().await, form.server().await];
        let replicas = [form.server().await, form.server().await];
        for (replica, primary) in replicas.iter().zip(&primaries) {
            replica.follow(primary).await;
        }
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("secret"), "the same on every node").unwrap();
        Self { primaries, replicas, form, folder }
    }

    /// Returns a policy file for the shards. `text` contains the limits and rules, and `store`
    /// contains further settings of the store.
    pub(crate) fn policy(&self, text: &str, store: &str) -> PathBuf {
        let shard = |shard: usize| {
            let (primary, replica) = (self.primaries[shard].url(), self.replicas[shard].url());
            format!("{}: {{ primary: \"{primary}\", replicas: \"{replica}\" }}", SHARDS[shard])
        };
        let secret = self.folder.path().join("secret");
        let text = format!(
            "subjects: {{ token: {{ header: authorization }}, address: {{ client_address: {{}} }} }}\n\
             {text}\n\
             secret: {{ file: \"{}\" }}\n\
             store: {{ redis: {{ shards: {{ {}, {} }}, route_by: token, {store}{} }} }}\n",
            secret.display(),
            shard(0),
            shard(1),
            self.setting(", "),
        );
        self.write(&text)
    }

    /// Returns a shipped policy file, in which the servers at the ports 7101, 7102, 7201 and 7202
    /// are replaced by the servers of the shards.
    pub(crate) fn shipped(&self, name: &str, deadline: &str) -> PathBuf {
        let mut text = std::fs::read_to_string(policy(name)).unwrap();
        let secret = self.folder.path().join("secret");
        let mut changes = vec![
            (
                "deadline: 15ms".to_owned(),
                format!("deadline: {deadline}{}", self.setting("\n    ")),
            ),
            ("env: TOLLGATE_SECRET".to_owned(), format!("file: \"{}\"", secret.display())),
        ];
        for (server, port) in
            self.primaries.iter().chain(&self.replicas).zip([7101, 7102, 7201, 7202])
        {
            changes
                .push((format!("\"redis://127.0.0.1:{port}\""), format!("\"{}\"", server.url())));
        }
        for (from, to) in changes {
            assert_eq!(text.matches(&from).count(), 1, "{name} has other than one {from:?}");
            text = text.replace(&from, &to);
        }
        self.write(&text)
    }

    /// Returns `separator` and the setting that selects this form, or an empty text if the form is
    /// the default.
    fn setting(&self, separator: &str) -> String {
        match self.form {
            Form::Function | Form::Module => String::new(),
            Form::Tables => format!("{separator}scripting: tables"),
        }
    }

    fn write(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("policy.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Returns the state of clients on the primary of a shard.
    pub(crate) async fn state(&self, shard: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut connection = self.primaries[shard].connect().await;
        let mut state = Vec::new();
        for key in client_keys(&self.primaries[shard]).await {
            let value = redis::cmd("GET").arg(&key).query_async(&mut connection).await.unwrap();
            state.push((key, value));
        }
        state
    }

    /// Returns the number of client keys on the primary of each shard.
    pub(crate) async fn keys(&self) -> [usize; 2] {
        [client_keys(&self.primaries[0]).await.len(), client_keys(&self.primaries[1]).await.len()]
    }

    /// Returns a token with its limits on the shard with this number, and charges it once.
    pub(crate) async fn token_on(&self, shard: usize, proxy: &Proxy) -> String {
        for number in 0..64 {
            let token = format!("authorization: Bearer {shard}-{number}");
            let before = self.state(shard).await;
            assert_eq!(proxy.get("/", &[&token]).status, 200);
            if self.state(shard).await != before {
                return token;
            }
        }
        panic!("64 tokens on one of two shards: are clients spread?");
    }
}

/// Returns the keys of clients. Other keys contain the shard map that each node uses, and whether
/// keys were lost.
async fn client_keys(server: &Server) -> Vec<Vec<u8>> {
    let is_of_nodes = |key: &Vec<u8>| {
        key.starts_with(b"tg1:tollgate.map:") || key.starts_with(b"tg1:{generation}")
    };
    server.keys().await.into_iter().filter(|key| !is_of_nodes(key)).collect()
}
