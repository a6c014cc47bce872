//! A service, Tollgate, and the proxy that sends a sub-request before it forwards a request.

use std::path::Path;

use tempfile::TempDir;

use crate::sub_requests::client;
use crate::sub_requests::edge::{Changes, Edge, Kind};
use crate::sub_requests::tollgate::Tollgate;
use crate::support::api::Api;
use crate::support::world::Answer;

pub(crate) struct Site {
    pub(crate) api: Api,
    pub(crate) tollgate: Tollgate,
    pub(crate) edge: Edge,
}

impl Site {
    /// Starts a site with the policy file at `policy`.
    pub(crate) fn start(kind: Kind, policy: &Path, changes: Changes<'_>) -> Self {
        let api = Api::start();
        let tollgate = Tollgate::start(policy);
        let edge = Edge::start(kind, api.address(), tollgate.address, changes);
        Self { api, tollgate, edge }
    }

    /// Starts a site with the policy `text`.
    pub(crate) fn with_policy(kind: Kind, text: &str, changes: Changes<'_>) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("policy.yaml");
        std::fs::write(&path, text).unwrap();
        // The file is read once, at the start.
        Self::start(kind, &path, changes)
    }

    pub(crate) fn get(&self, path: &str, fields: &[&str]) -> Answer {
        client::get(self.edge.address, path, fields)
    }
}

/// Returns a policy with one limit for each address.
pub(crate) fn limit_of(quota: u64) -> String {
    format!(
        "subjects: {{ address: {{ client_address: {{}} }} }}\n\
         limits: {{ few: {{ quota: {quota}, window: 1h, per: address }} }}\n\
         rules: [ {{ name: all, limits: few }} ]\n\
         answers: {{ headers: [github, ietf] }}\n"
    )
}
