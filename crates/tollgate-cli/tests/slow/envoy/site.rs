//! A service, Tollgate, and Envoy between them and the client.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::envoy::process::Envoy;
use crate::envoy::service::service;
use crate::envoy::tollgate::Tollgate;

/// The configurations of this test, gone with it.
pub(crate) struct Site {
    pub(crate) tollgate: Tollgate,
    pub(crate) envoy: Envoy,
    folder: TempDir,
}

/// A text of which something stands for something else: exactly once, or the shipped file has
/// changed and the test with it.
pub(crate) type Changes<'c> = &'c [(&'c str, &'c str)];

/// Windows that do not end while a test runs.
pub(crate) const LONG_WINDOW: (&str, &str) =
    ("quota: 600, window: 1m, anchor: calendar", "quota: 600, window: 1d");

impl Site {
    /// The shipped policy and configuration, with `changes` to each.
    pub(crate) fn start(policy: Changes<'_>, configuration: Changes<'_>) -> Self {
        let policy = changed(&shipped("policies/envoy.yaml"), policy);
        Self::with(&policy, "deploy/envoy/envoy.yaml", configuration)
    }

    /// This policy, and a shipped configuration with `changes`.
    pub(crate) fn with(policy: &str, configuration: &str, changes: Changes<'_>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("policy.yaml");
        std::fs::write(&path, policy).unwrap();
        let tollgate = Tollgate::start(&path);
        // Whatever is counted is counted exactly only if nobody stops waiting for it: on a busy
        // machine that takes longer than the shipped time.
        let patient = changed(&shipped(configuration), &[("timeout: 0.02s", "timeout: 30s")]);
        let configuration = changed(&patient, changes);
        let envoy = Envoy::start(&configuration, folder.path(), service(), tollgate.address);
        Self { tollgate, envoy, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// A file of this project.
pub(crate) fn shipped(path: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `text` with every change made in its one place.
pub(crate) fn changed(text: &str, changes: Changes<'_>) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from:?} in\n{text}");
        text.replacen(from, to, 1)
    })
}
