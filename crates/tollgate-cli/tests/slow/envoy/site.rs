//! A service and Tollgate, with Envoy between them and the client.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::envoy::process::Envoy;
use crate::envoy::service::service;
use crate::envoy::tollgate::Tollgate;

/// Tollgate and Envoy, with the configuration of one test. Both are stopped and the files are
/// removed when this value is dropped.
pub(crate) struct Site {
    pub(crate) tollgate: Tollgate,
    pub(crate) envoy: Envoy,
    folder: TempDir,
}

/// A list of replacements in a text. Each original text must occur exactly once, because the test
/// has to change if the shipped file changes.
pub(crate) type Changes<'c> = &'c [(&'c str, &'c str)];

/// A replacement in the policy with a window that does not end during a test.
pub(crate) const LONG_WINDOW: (&str, &str) =
    ("quota: 600, window: 1m, anchor: calendar", "quota: 600, window: 1d");

impl Site {
    /// Starts a site with the shipped policy and the shipped configuration, with changes to each of
    /// them.
    pub(crate) fn start(policy: Changes<'_>, configuration: Changes<'_>) -> Self {
        let policy = changed(&shipped("policies/envoy.yaml"), policy);
        Self::with(&policy, "deploy/envoy/envoy.yaml", configuration)
    }

    /// Starts a site with the policy `policy`, and with a shipped configuration to which `changes`
    /// are applied.
    pub(crate) fn with(policy: &str, configuration: &str, changes: Changes<'_>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("policy.yaml");
        std::fs::write(&path, policy).unwrap();
        let tollgate = Tollgate::start(&path);
        // Counts are only exact if no caller times out. On a busy machine, this requires a longer
        // timeout than the shipped one.
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
