//! Which group of servers serves a request.

use std::{collections::HashMap, sync::Arc};

use tollgate::tower::MatchedRules;

use super::group::Group;
use crate::settings::Settings;
use crate::upstreams::{RouteMatch, RoutePrefix};

/// The groups of servers, by rule, host and path.
#[derive(Debug)]
pub(crate) struct Router {
    rules: HashMap<Box<str>, Arc<Group>>,
    /// The longest prefixes first.
    prefixes: Vec<(RoutePrefix, Arc<Group>)>,
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
        let (mut rules, mut prefixes) = (HashMap::new(), Vec::new());
        for (requests, upstreams) in upstreams.routes() {
            let group = group(upstreams);
            match requests {
                RouteMatch::Rule(name) => {
                    rules.insert(name.clone(), group);
                }
                RouteMatch::Prefix(prefix) => prefixes.push((prefix.clone(), group)),
            }
        }
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.specificity()));
        Self { rules, prefixes, default }
    }

    /// Returns the group of a request for `path` at `host` that `matched` rules matched.
    pub(crate) fn group(
        &self,
        host: &[u8],
        path: &str,
        matched: Option<&MatchedRules>,
    ) -> &Arc<Group> {
        let mut names = matched.into_iter().flat_map(|rules| &rules.0);
        if let Some(group) = names.find_map(|name| self.rules.get(&**name)) {
            return group;
        }
        let found = self.prefixes.iter().find(|(prefix, _)| prefix.matches(host, path));
        found.map_or(&self.default, |(_, group)| group)
    }
}
