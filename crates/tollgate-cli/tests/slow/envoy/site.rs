//! A service and Tollgate, with Envoy between them and the client.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::envoy::process::Envoy;
use crate::envoy::service::service;
use crate::envoy::tollgate::Tollgate;

/// The configurations of this test, removed when dropped.
pub(crate) struct Site {
    pub(crate) tollgate: Tollgate,
    pub(crate) envoy: Envoy,
    folder: TempDir,
}

/// A replacement in a text. The original must occur exactly once; otherwise the shipped file has
/// changed and the test must too.
pub(crate) type Changes<'c> = &'c [(&'c str, &'c str)];

/// Windows that do not end during a test.
pub(crate) const LONG_WINDOW: (&str, &str) =
    ("quota: 600, window: 1m, anchor: calendar", "quota: 600, window: 1d");

impl Site {
    /// Starts with the shipped policy and configuration, with `changes` to each.
    pub(crate) fn start(policy: Changes<'_>, configuration: Changes<'_>) -> Self {
        let policy = changed(&shipped("policies/envoy.yaml"), policy);
        Self::with(&policy, "deploy/envoy/envoy.yaml", configuration)
    }

    /// Starts with this policy, and a shipped configuration with `changes`.
    pub(crate) fn with(policy: &str, configuration: &str, changes: Changes<'_>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("policy.yaml");
        std::fs::write(&path, policy).unwrap();
        let tollgate = Tollgate::start(&path);
        // Counts are only exact if no caller times out: on a busy machine that needs more than the
        // shipped timeout.
        let patient = changed(&shipped(configuration), &[("timeout: 0.02s", "timeout: 30s")]);
        let configuration = changed(&patient, changes);
        let envoy = Envoy::start(&configuration, folder.path(), service(), tollgate.address);
        Self { tollgate, envoy, folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Reads a file of this project.
pub(crate) fn shipped(path: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns `text` with every change applied at its single position.
pub(crate) fn changed(text: &str, changes: Changes<'_>) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 1, "{from:?} in\n{text}");
        text.replacen(from, to, 1)
    })
}
