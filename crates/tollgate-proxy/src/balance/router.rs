//! Which group of servers serves a request.

use std::sync::Arc;

use super::group::Group;
use crate::{Settings, upstreams::RoutePrefix};

/// The groups of servers, by host and path.
#[derive(Debug)]
pub(crate) struct Router {
    /// The longest prefixes first.
    routes: Vec<(RoutePrefix, Arc<Group>)>,
    default: Arc<Group>,
}

impl Router {
    pub(crate) fn new(settings: &Arc<Settings>) -> Self {
        let group = |upstreams: &[_]| {
            let group = Arc::new(Group::new(upstreams, settings));
            settings.upstream_metrics.add(&group);
            group
        };
        let upstreams = &settings.upstreams;
        let default = group(upstreams.default_group());
        let mut routes: Vec<_> = upstreams
            .routes()
            .map(|(prefix, upstreams)| (prefix.clone(), group(upstreams)))
            .collect();
        routes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.specificity()));
        Self { routes, default }
    }

    /// Returns the group of a request for `path` at `host`.
    pub(crate) fn group(&self, host: &[u8], path: &str) -> &Arc<Group> {
        let found = self.routes.iter().find(|(prefix, _)| prefix.matches(host, path));
        found.map_or(&self.default, |(_, group)| group)
    }
}
