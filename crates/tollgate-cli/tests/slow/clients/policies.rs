//! The shipped policy, and variants with shorter waiting times for tests.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// The policy file of one test. The file is removed when this value is dropped.
pub(crate) struct Policy(TempDir);

impl Policy {
    /// Returns `policies/github.yaml` with each of `changes` applied: a text that occurs once, and
    /// its replacement.
    pub(crate) fn github_with(changes: &[(&str, &str)]) -> Self {
        let mut text =
            std::fs::read_to_string(crate::support::world::policy("github.yaml")).unwrap();
        for (old, new) in changes {
            assert_eq!(text.matches(old).count(), 1, "policies/github.yaml has other than {old:?}");
            text = text.replace(old, new);
        }
        Self::new(&text)
    }

    pub(crate) fn new(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("policy.yaml"), text).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> PathBuf {
        Path::join(self.0.path(), "policy.yaml")
    }
}
