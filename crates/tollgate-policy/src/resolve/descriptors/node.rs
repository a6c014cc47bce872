//! Converts the descriptors of a domain to the nodes of a tree, one level after another.

use tollgate_core::Algorithm;
use tollgate_core::policy::descriptors::{
    Allowance, DescriptorLevel, DescriptorRule, Metadata, Node, NodeValue, Pattern, Sharing,
};

use super::super::limits::ResolvedLimit;
use super::super::names::NameTable;
use super::{check_duplicates, is_too_deep, whole};
use crate::decode::{Field, Flag, List, OneOrMore, Spanned, Text, quoted};
use crate::raw::{self, DescriptorNode};
use crate::report::Report;
use crate::span::Span;

/// Converts the descriptors of the file to the nodes of a tree. Contains the limits to which the
/// descriptors can refer.
pub(super) struct DescriptorResolver<'m, 'f, 't> {
    pub(super) counted: &'m [Option<ResolvedLimit>],
    pub(super) limits: &'m mut NameTable<'f, raw::Limit>,
    pub(super) report: &'m mut Report<'t>,
}

impl DescriptorResolver<'_, '_, '_> {
    /// Converts the descriptors that have one parent to a level of the tree. Returns `None` after
    /// reporting a mistake.
    pub(super) fn level(
        &mut self,
        List(raw): &List<DescriptorNode>,
        depth: usize,
    ) -> Option<DescriptorLevel> {
        if raw.first().is_some_and(|first| is_too_deep(depth, first.at, self.report)) {
            return None;
        }
        check_duplicates(raw, self.report);
        let nodes = raw.iter().map(|given| self.node(given, depth)).collect();
        // Duplicate descriptors are already reported.
        DescriptorLevel::new(whole(nodes)?).ok()
    }

    fn node(&mut self, given: &Spanned<DescriptorNode>, depth: usize) -> Option<Node> {
        let raw = &given.value;
        let value = self.value(raw);
        let rule = self.rule(given);
        let below = match &raw.descriptors {
            Field::Absent => Some(DescriptorLevel::default()),
            Field::Invalid => None,
            Field::Value(below) => self.level(&below.value, depth + 1),
        };
        let key = raw.key.value()?.0.as_str().into();
        Some(Node { key, value: value?, rule: rule?, children: below? })
    }

    fn value(&mut self, raw: &DescriptorNode) -> Option<NodeValue> {
        let shares = is_on(&raw.share_threshold);
        let value = match &raw.value {
            Field::Absent => NodeValue::Any,
            Field::Invalid => return None,
            Field::Value(Spanned { value: Text(text), .. }) if !text.contains('*') => {
                NodeValue::Exact(text.as_str().into())
            }
            Field::Value(given) => match Pattern::parse(&given.value.0) {
                Ok(pattern) if shares => NodeValue::Wildcard(pattern, Sharing::Shared),
                Ok(pattern) => NodeValue::Wildcard(pattern, Sharing::PerValue),
                Err(error) => {
                    let text = quoted(&given.value.0);
                    self.report.error(given.at, format_args!("{text} is not a pattern"), error);
                    return None;
                }
            },
        };
        match raw.share_threshold.given() {
            Some(sharing) if shares && !matches!(value, NodeValue::Wildcard(..)) => {
                let message = "`share_threshold` needs a value with a `*`";
                let hint = "it makes all values that match the pattern share a counter";
                self.report.error(sharing.key, message, hint);
                None
            }
            _ => Some(value),
        }
    }

    /// Returns the rule of the descriptor `given`. Returns `Some(None)` if the descriptor sets
    /// nothing that needs a rule, and `None` after reporting a mistake.
    fn rule(&mut self, given: &Spanned<DescriptorNode>) -> Option<Option<DescriptorRule>> {
        let raw = &given.value;
        if is_on(&raw.detailed_metric)
            && let Some(detailed) = raw.detailed_metric.given()
        {
            let hint = "no metric has a label with a value of a request: remove this key";
            self.report.warning(detailed.key, "`detailed_metric` has no effect", hint);
        }
        let Some(allowance) = self.allowance(raw)? else {
            return self.is_empty_descriptor(raw).then_some(None);
        };
        let replaces = raw.replaces.value().map_or(&[][..], |OneOrMore(names)| names);
        Some(Some(DescriptorRule {
            allowance,
            name: raw.name.value().map(|name| name.0.as_str().into()),
            mode: raw.mode.value().map(|mode| mode.0).unwrap_or_default(),
            replaces: replaces.iter().map(|name| name.value.0.as_str().into()).collect(),
            metadata: raw.metadata.value().map_or(Metadata::Null, |any| any.0.clone()),
        }))
    }

    /// Returns the limit of a descriptor, or its fixed decision if it is `unlimited` or `blocked`.
    /// Returns `Some(None)` if the descriptor has neither, and `None` after reporting a mistake.
    fn allowance(&mut self, raw: &DescriptorNode) -> Option<Option<Allowance>> {
        let flag = |flag: &Field<Flag>| flag.given().filter(|_| is_on(flag)).map(|given| given.key);
        let described =
            [raw.limit.given().map(|given| given.key), flag(&raw.unlimited), flag(&raw.blocked)];
        if let [Some(_), Some(second), ..]
        | [Some(_), _, Some(second)]
        | [_, Some(_), Some(second)] = described
        {
            let message = "a descriptor can have only one of `limit`, `unlimited` and `blocked`";
            self.report.plain_error(second, message);
            return None;
        }
        match (&raw.limit, described) {
            (Field::Invalid, _) => None,
            (_, [_, Some(_), _]) => Some(Some(Allowance::Unlimited)),
            (_, [_, _, Some(_)]) => Some(Some(Allowance::Blocked)),
            (Field::Value(name), _) => self.limit(name).map(|index| Some(Allowance::Limit(index))),
            (Field::Absent, _) => Some(None),
        }
    }

    /// Returns the index of the limit `name`. Returns `None` after reporting a mistake, such as a
    /// limit that descriptors cannot use.
    fn limit(&mut self, name: &Spanned<Text>) -> Option<usize> {
        let index = self.limits.index(&name.value.0, name.at, self.report)?;
        // A mistake in the limit itself is already reported.
        let limit = &self.counted[index].as_ref()?.limit;
        let quoted = quoted(&name.value.0);
        if !limit.per.is_empty() {
            let message = format_args!("the limit {quoted} has a `per`");
            let hint = "the descriptor is the subject: remove `per`";
            self.report.error(name.at, message, hint);
            return None;
        }
        if self.counted[index].as_ref()?.quotas.is_some() {
            let message = format_args!("the limit {quoted} has quotas by subject");
            let hint = "define a limit for each quota, and a descriptor for each value";
            self.report.error(name.at, message, hint);
            return None;
        }
        if self.counted[index].as_ref()?.windows.is_some() {
            let message = format_args!("the limit {quoted} has billing days by subject");
            let hint = "define a limit for each day, and a descriptor for each value";
            self.report.error(name.at, message, hint);
            return None;
        }
        if matches!(limit.limit.algorithm(), Algorithm::Concurrency(_)) {
            let message = format_args!("the limit {quoted} counts requests in flight");
            let hint = "callers that send descriptors do not report the end of a request";
            self.report.error(name.at, message, hint);
            return None;
        }
        Some(index)
    }

    /// Checks a descriptor that has no limit: reports each key that has an effect only together with
    /// a limit. Returns whether there is no such key.
    fn is_empty_descriptor(&mut self, raw: &DescriptorNode) -> bool {
        fn key<T>(field: &Field<T>) -> Option<Span> {
            field.given().map(|given| given.key)
        }
        let keys = [
            ("name", key(&raw.name)),
            ("mode", key(&raw.mode)),
            ("replaces", key(&raw.replaces)),
            ("metadata", key(&raw.metadata)),
        ];
        let mut is_clean = true;
        for (name, at) in keys {
            if let Some(at) = at {
                let message = format_args!("`{name}` has no effect without a limit");
                let hint = "set `limit`, `unlimited: true` or `blocked: true`";
                self.report.error(at, message, hint);
                is_clean = false;
            }
        }
        is_clean
    }
}

fn is_on(flag: &Field<Flag>) -> bool {
    flag.value().is_some_and(|flag| flag.0)
}
