//! Converts the descriptors of `envoyproxy/ratelimit` to the descriptors of a policy, with a note
//! for each construct. In this module, "the server" is `envoyproxy/ratelimit`.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tollgate_core::policy::descriptors::{Counting, TimeUnit};

use super::names::LimitNames;
use super::policy::PolicyDraft;
use super::source::{Descriptor, Rate, RateLimit, Source};
use crate::decode::quoted;
use crate::import::text::{Mapping, metadata, scalars};
use crate::import::{Conversion, Note};
use crate::report::Report;
use crate::span::Span;

/// The state of a conversion, which merges the descriptors of several files into one policy.
pub(super) struct Converter {
    counting: Counting,
    draft: PolicyDraft,
    notes: Vec<Note>,
    names: LimitNames,
    /// The file and the line of each root descriptor that was already seen, by domain, key and
    /// value.
    roots: HashMap<(String, String, String), (Arc<str>, usize)>,
    /// The names of limits that occur in the key `replaces`, separately for each domain.
    replaceable: HashMap<String, BTreeSet<String>>,
    is_one_domain: bool,
}

/// The keys and values of the descriptors that lead from the root to a descriptor. The names of
/// limits are made from them.
type ParentPath<'a> = Vec<&'a str>;

impl Converter {
    pub(super) fn new(counting: Counting) -> Self {
        Self {
            counting,
            draft: PolicyDraft::default(),
            notes: Vec::new(),
            names: LimitNames::default(),
            roots: HashMap::new(),
            replaceable: HashMap::new(),
            is_one_domain: true,
        }
    }

    /// Reports descriptors that `envoyproxy/ratelimit` rejects: duplicates, and descriptors that
    /// replace themselves.
    pub(super) fn check(&mut self, source: &Source, report: &mut Report<'_>) {
        for node in &source.nodes {
            let place = (source.domain.value.clone(), node.key.clone(), node.value.clone());
            let own = (Arc::clone(&source.file), node.at.line);
            if let Some((file, line)) = self.roots.insert(place, own) {
                report_duplicate(node, &format!("first at {file}:{line}"), report);
            }
            check_below(node, report);
        }
    }

    /// Reports a mistake if no file has descriptors, because a policy without limits and
    /// descriptors cannot be loaded.
    pub(super) fn check_all(&self, sources: &[Source], report: &mut Report<'_>) {
        if let Some(last) = sources.last()
            && sources.iter().all(|source| source.nodes.is_empty())
        {
            let message = "no domain has `descriptors`: there is nothing to limit";
            report.plain_error(last.domain.at, message);
        }
    }

    /// Collects the names in `replaces` of all `sources`, separately for each domain, and reserves
    /// them: no generated name of another limit becomes equal to one of them.
    pub(super) fn names(&mut self, sources: &[Source]) {
        for source in sources {
            let names = self.replaceable.entry(source.domain.value.clone()).or_default();
            source.nodes.iter().for_each(|node| collect_names(node, names));
        }
        self.replaceable.values().flatten().for_each(|name| self.names.reserve(name));
        self.is_one_domain = self.replaceable.len() < 2;
    }

    /// Adds the descriptors of the file `source` to the policy.
    pub(super) fn add(&mut self, source: &Source) {
        let domain = &source.domain.value;
        let known = self.draft.domains.iter().position(|(name, _)| name == domain);
        let at = known.unwrap_or_else(|| {
            self.draft.domains.push((domain.clone(), Vec::new()));
            self.draft.domains.len() - 1
        });
        let noted = self.notes.len();
        let mut file = File { converter: self, file: &source.file, domain };
        let construct = format!("domain {}", quoted(domain));
        match known {
            Some(_) => {
                let how = "merged with the previous files, as with MERGE_DOMAIN_CONFIG";
                file.kept(source.domain.at, construct, how);
            }
            None if source.nodes.is_empty() => {
                let how = "without descriptors, so none of its requests is limited";
                file.kept(source.domain.at, construct, how);
            }
            None => file.kept(source.domain.at, construct, ""),
        }
        file.counting(source.domain.at);
        file.ignored(&source.ignored);
        let above = if file.converter.is_one_domain { Vec::new() } else { vec![domain.as_str()] };
        let nodes: Vec<_> = source.nodes.iter().map(|node| file.node(node, &above)).collect();
        self.draft.domains[at].1.extend(nodes);
        self.notes[noted..].sort_by_key(|note| note.line);
    }

    /// Returns the text of the policy, and the notes in the order of the files.
    pub(super) fn finish(self) -> (String, Vec<Note>) {
        (self.draft.write(self.counting), self.notes)
    }
}

/// The file that is being converted, with the conversion to which it belongs.
struct File<'c, 's> {
    converter: &'c mut Converter,
    file: &'s Arc<str>,
    domain: &'s str,
}

impl File<'_, '_> {
    fn node<'s>(&mut self, node: &'s Descriptor, above: &ParentPath<'s>) -> Mapping {
        let mut out = Mapping::default();
        let entry = entry(node);
        out.text("key", &node.key);
        if !node.value.is_empty() {
            out.text("value", &node.value);
        }
        self.kept(node.at, format!("descriptor {entry}"), "");
        self.matching(node);
        let mut path = above.clone();
        path.extend([node.key.as_str(), node.value.as_str()]);
        match &node.limit {
            Some(limit) => self.limit(node, limit, &path, &mut out),
            None => self.without_limit(node),
        }
        self.metrics(node);
        if let Some(at) = node.share_threshold {
            out.raw("share_threshold", "true");
            self.kept(at, "share_threshold".to_owned(), "");
        }
        self.ignored(&node.ignored);
        if !node.below.is_empty() {
            let below = node.below.iter().map(|below| self.node(below, &path)).collect();
            out.list("descriptors", below);
        }
        out
    }

    /// Adds notes about the key and the value of a descriptor, if different versions of
    /// `envoyproxy/ratelimit` match them in different ways.
    fn matching(&mut self, node: &Descriptor) {
        if node.value.trim_end_matches('*').contains('*') {
            let how = "`*` matches any characters, as in newer versions of the server; older versions match it literally if it is not at the end";
            self.note(
                node.at,
                Conversion::Approximated,
                format!("value {}", quoted(&node.value)),
                how,
            );
        }
        if node.value.is_empty() && node.key.ends_with('*') {
            let how = "the key is matched literally; in the server its `*` matches the end of any key and value";
            self.note(node.at, Conversion::Approximated, format!("key {}", quoted(&node.key)), how);
        }
    }

    fn limit(
        &mut self,
        node: &Descriptor,
        limit: &RateLimit,
        path: &ParentPath<'_>,
        out: &mut Mapping,
    ) {
        let name = self.allowance(limit, path, out);
        if let Some(own) = &limit.name {
            // If a descriptor sets no name, its name is that of its limit.
            if name.as_ref() != Some(&own.value) {
                out.text("name", &own.value);
            }
            self.kept(own.key, format!("name {}", quoted(&own.value)), "");
        }
        self.replaces(limit, out);
        self.mode(node, out);
        if let Some(given) = &node.metadata {
            out.raw("metadata", metadata(&given.value));
            self.kept(given.key, "metadata".to_owned(), "");
        }
    }

    /// Adds the rate limit of a descriptor to `out`, the keys of the descriptor in the policy. If
    /// the rate limit needs a limit in the policy, adds that limit and returns its name. Otherwise
    /// returns `None`.
    fn allowance(
        &mut self,
        limit: &RateLimit,
        path: &ParentPath<'_>,
        out: &mut Mapping,
    ) -> Option<String> {
        match &limit.rate {
            Rate::Unlimited => {
                out.raw("unlimited", "true");
                self.kept(limit.at, "unlimited rate_limit".to_owned(), "");
                None
            }
            Rate::Limited { requests: 0, .. } => {
                out.raw("blocked", "true");
                let how = "as blocked; callers receive no unit";
                self.kept(limit.at, "rate_limit of no requests".to_owned(), how);
                None
            }
            Rate::Limited { requests, unit, units } => {
                let names = &mut self.converter.names;
                let name = match &limit.name {
                    Some(name) => names.of_name(&name.value),
                    None => names.of_path(path.iter().copied()),
                };
                self.window(limit.at, *requests, *unit, *units, &name);
                out.text("limit", &name);
                Some(name)
            }
        }
    }

    /// Adds a limit with the name `name` to the policy: `requests` in each window of `units` times
    /// `unit`.
    fn window(&mut self, at: Span, requests: u32, unit: TimeUnit, units: u32, name: &str) {
        let window = tollgate_core::Millis::new(unit.window().get().saturating_mul(units.into()));
        let mut limit = Mapping::default();
        limit.raw("quota", requests.to_string());
        limit.raw("window", window.to_string());
        limit.raw("anchor", "calendar");
        if self.converter.counting == Counting::Each {
            limit.raw("count_refused", "true");
        }
        let how = match unit {
            TimeUnit::Month => "a month is 30 days, as without USE_CALENDAR_MONTH_RATE_LIMIT; ",
            TimeUnit::Year => "a year is 365 days, as in the server; ",
            TimeUnit::Week => "weeks begin on Thursdays, as they do in the server by default; ",
            _ => "",
        };
        let construct = format!("rate_limit of {requests} in {window}");
        self.kept(at, construct, &format!("{how}limit {name}"));
        self.converter.draft.limits.push((name.to_owned(), limit));
    }

    fn replaces(&mut self, limit: &RateLimit, out: &mut Mapping) {
        let known = self.converter.replaceable.get(self.domain).cloned().unwrap_or_default();
        let (replaced, unknown): (Vec<_>, Vec<_>) =
            limit.replaces.iter().partition(|name| known.contains(&name.value));
        for name in &replaced {
            self.kept(name.key, format!("replaces {}", quoted(&name.value)), "");
        }
        for name in unknown {
            let construct = format!("replaces {}", quoted(&name.value));
            let how = "no limit of the domain has this name, so nothing is replaced";
            self.note(name.key, Conversion::NotSupported, construct, how);
        }
        if !replaced.is_empty() {
            let names = replaced.iter().map(|name| name.value.as_str());
            out.raw("replaces", scalars(names));
        }
    }

    fn mode(&mut self, node: &Descriptor, out: &mut Mapping) {
        match (node.shadow_mode, node.quota_mode) {
            (Some(shadow), quota) => {
                out.raw("mode", "shadow");
                self.kept(shadow, "shadow_mode".to_owned(), "");
                if let Some(quota) = quota {
                    let how = "it is only counted; the server also keeps the other quotas \
                               of a request from refusing it";
                    self.note(quota, Conversion::Approximated, "quota_mode".to_owned(), how);
                }
            }
            (None, Some(quota)) => {
                out.raw("mode", "quota");
                self.kept(quota, "quota_mode".to_owned(), "");
            }
            (None, None) => {}
        }
    }

    /// Adds notes about the keys that add values to metrics.
    fn metrics(&mut self, node: &Descriptor) {
        let keys =
            [("detailed_metric", node.detailed_metric), ("value_to_metric", node.value_to_metric)];
        for (name, at) in keys {
            if let Some(at) = at {
                let how = "left out: no metric has a label with a value of a request";
                self.note(at, Conversion::NotSupported, name.to_owned(), how);
            }
        }
    }

    /// Adds notes about the keys of a descriptor that have no effect because the descriptor has no
    /// rate limit.
    fn without_limit(&mut self, node: &Descriptor) {
        let switches = [
            ("shadow_mode", node.shadow_mode),
            ("quota_mode", node.quota_mode),
            ("metadata", node.metadata.as_ref().map(|given| given.key)),
        ];
        for (name, at) in switches {
            if let Some(at) = at {
                let how = "left out: it has no effect without a rate_limit, in the server or here";
                self.note(at, Conversion::NotSupported, name.to_owned(), how);
            }
        }
    }

    fn ignored(&mut self, keys: &[(String, Span)]) {
        for (key, at) in keys {
            let how = "left out: the server ignores it here";
            self.note(*at, Conversion::NotSupported, key.clone(), how);
        }
    }

    fn counting(&mut self, at: Span) {
        let construct = "counting of several descriptors".to_owned();
        match self.converter.counting {
            Counting::Each => {
                self.kept(at, construct, "each separately, and refused requests count");
            }
            Counting::Atomic => {
                let how = "all descriptors of a request are counted or none; the server counts \
                           each, also for refused requests";
                self.note(at, Conversion::Approximated, construct, how);
            }
        }
    }

    fn kept(&mut self, at: Span, construct: String, how: &str) {
        self.note(at, Conversion::Kept, construct, how);
    }

    fn note(&mut self, at: Span, conversion: Conversion, construct: String, how: &str) {
        let (file, how) = (Arc::clone(self.file), how.to_owned());
        self.converter.notes.push(Note { file, line: at.line, conversion, construct, how });
    }
}

fn collect_names(node: &Descriptor, names: &mut BTreeSet<String>) {
    let name = node.limit.as_ref().and_then(|limit| limit.name.as_ref());
    names.extend(name.map(|name| name.value.clone()));
    node.below.iter().for_each(|below| collect_names(below, names));
}

fn check_below(node: &Descriptor, report: &mut Report<'_>) {
    let replaces = node.limit.iter().flat_map(|limit| &limit.replaces);
    let own = node.limit.as_ref().and_then(|limit| limit.name.as_ref());
    for name in replaces.filter(|name| own.is_some_and(|own| own.value == name.value)) {
        report.plain_error(name.at, "a rate_limit cannot replace itself");
    }
    let mut lines: HashMap<(&str, &str), usize> = HashMap::new();
    for below in &node.below {
        if let Some(line) = lines.insert((&below.key, &below.value), below.at.line) {
            report_duplicate(below, &format!("first on line {line}"), report);
        }
        check_below(below, report);
    }
}

fn report_duplicate(node: &Descriptor, first: &str, report: &mut Report<'_>) {
    report.error(node.at, format_args!("duplicate descriptor {}", entry(node)), first);
}

fn entry(node: &Descriptor) -> String {
    match node.value.as_str() {
        "" => quoted(&node.key),
        value => quoted(&format!("{}={value}", node.key)),
    }
}
