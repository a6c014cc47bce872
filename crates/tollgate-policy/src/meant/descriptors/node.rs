//! One descriptor of a tree.

use tollgate_core::Algorithm;
use tollgate_core::policy::descriptors::{
    Allowance, Level, Metadata, MetricDetail, Node, NodeValue, Pattern, Rule, Sharing,
};

use super::super::limits::Counted;
use super::super::names::Known;
use super::{check_twice, is_too_deep, whole};
use crate::read::{Field, Flag, Given, List, OneOrMore, Text, quoted};
use crate::report::Report;
use crate::span::Span;
use crate::written::{self, DescriptorNode};

/// What descriptors are understood with.
pub(super) struct Means<'m, 'f, 't> {
    pub(super) counted: &'m [Option<Counted>],
    pub(super) limits: &'m mut Known<'f, written::Limit>,
    pub(super) report: &'m mut Report<'t>,
}

impl Means<'_, '_, '_> {
    /// Descriptors side by side; `None` if one of them is wrong, which is reported.
    pub(super) fn level(
        &mut self,
        List(written): &List<DescriptorNode>,
        depth: usize,
    ) -> Option<Level> {
        if written.first().is_some_and(|first| is_too_deep(depth, first.at, self.report)) {
            return None;
        }
        check_twice(written, self.report);
        let nodes = written.iter().map(|given| self.node(given, depth)).collect();
        // Where two are the same, that is reported.
        Level::new(whole(nodes)?).ok()
    }

    fn node(&mut self, given: &Given<DescriptorNode>, depth: usize) -> Option<Node> {
        let written = &given.value;
        let value = self.value(written);
        let rule = self.rule(given);
        let below = match &written.descriptors {
            Field::Absent => Some(Level::default()),
            Field::Wrong => None,
            Field::Given(below) => self.level(&below.value, depth + 1),
        };
        let key = written.key.value()?.0.as_str().into();
        Some(Node { key, value: value?, rule: rule?, below: below? })
    }

    fn value(&mut self, written: &DescriptorNode) -> Option<NodeValue> {
        let shares = is_on(&written.share_threshold);
        let value = match &written.value {
            Field::Absent => NodeValue::Any,
            Field::Wrong => return None,
            Field::Given(Given { value: Text(text), .. }) if !text.contains('*') => {
                NodeValue::Exact(text.as_str().into())
            }
            Field::Given(given) => match Pattern::parse(&given.value.0) {
                Ok(pattern) if shares => NodeValue::Wildcard(pattern, Sharing::Shared),
                Ok(pattern) => NodeValue::Wildcard(pattern, Sharing::PerValue),
                Err(error) => {
                    let text = quoted(&given.value.0);
                    self.report.mistake(given.at, format_args!("{text} is no pattern"), error);
                    return None;
                }
            },
        };
        match written.share_threshold.given() {
            Some(sharing) if shares && !matches!(value, NodeValue::Wildcard(..)) => {
                let message = "`share_threshold` needs a value with a `*`";
                let hint = "it says that all values which fit one pattern share a counter";
                self.report.mistake(sharing.key, message, hint);
                None
            }
            _ => Some(value),
        }
    }

    /// What the node says, and nothing where it says nothing; `None` if that is wrong.
    fn rule(&mut self, given: &Given<DescriptorNode>) -> Option<Option<Rule>> {
        let written = &given.value;
        let Some(allowance) = self.allowance(written)? else {
            return self.says_nothing(written).then_some(None);
        };
        let replaces = written.replaces.value().map_or(&[][..], |OneOrMore(names)| names);
        let metric = match is_on(&written.detailed_metric) {
            true => MetricDetail::Values,
            false => MetricDetail::Node,
        };
        Some(Some(Rule {
            allowance,
            name: written.name.value().map(|name| name.0.as_str().into()),
            mode: written.mode.value().map(|mode| mode.0).unwrap_or_default(),
            replaces: replaces.iter().map(|name| name.value.0.as_str().into()).collect(),
            metric,
            metadata: written.metadata.value().map_or(Metadata::Null, |any| any.0.clone()),
        }))
    }

    /// How much is allowed, and nothing where that is not said; `None` if what is said is wrong.
    fn allowance(&mut self, written: &DescriptorNode) -> Option<Option<Allowance>> {
        let flag = |flag: &Field<Flag>| flag.given().filter(|_| is_on(flag)).map(|given| given.key);
        let said = [
            written.limit.given().map(|given| given.key),
            flag(&written.unlimited),
            flag(&written.blocked),
        ];
        if let [Some(_), Some(second), ..]
        | [Some(_), _, Some(second)]
        | [_, Some(_), Some(second)] = said
        {
            let message = "a descriptor is limited, unlimited or blocked: one of them";
            self.report.plain_mistake(second, message);
            return None;
        }
        match (&written.limit, said) {
            (Field::Wrong, _) => None,
            (_, [_, Some(_), _]) => Some(Some(Allowance::Unlimited)),
            (_, [_, _, Some(_)]) => Some(Some(Allowance::Blocked)),
            (Field::Given(name), _) => self.limit(name).map(|index| Some(Allowance::Limit(index))),
            (Field::Absent, _) => Some(None),
        }
    }

    /// The index of a limit that a tree can use.
    fn limit(&mut self, name: &Given<Text>) -> Option<usize> {
        let index = self.limits.index(&name.value.0, name.at, self.report)?;
        // What is wrong with the limit itself was reported there.
        let limit = &self.counted[index].as_ref()?.limit;
        let quoted = quoted(&name.value.0);
        if !limit.per.is_empty() {
            let message = format_args!("the limit {quoted} has a `per`");
            let hint = "the descriptor says whom it limits: leave `per` out";
            self.report.mistake(name.at, message, hint);
            return None;
        }
        if matches!(limit.limit.algorithm(), Algorithm::Concurrency(_)) {
            let message = format_args!("the limit {quoted} counts requests in flight");
            let hint = "who sends descriptors does not say when a request ends";
            self.report.mistake(name.at, message, hint);
            return None;
        }
        Some(index)
    }

    /// Reports what is said of a limit that is not there; whether nothing is.
    fn says_nothing(&mut self, written: &DescriptorNode) -> bool {
        fn key<T>(field: &Field<T>) -> Option<Span> {
            field.given().map(|given| given.key)
        }
        let keys = [
            ("name", key(&written.name)),
            ("mode", key(&written.mode)),
            ("replaces", key(&written.replaces)),
            ("detailed_metric", key(&written.detailed_metric)),
            ("metadata", key(&written.metadata)),
        ];
        let mut is_clean = true;
        for (name, at) in keys {
            if let Some(at) = at {
                let message = format_args!("`{name}` means nothing without a limit");
                let hint = "say `limit`, `unlimited: true` or `blocked: true`";
                self.report.mistake(at, message, hint);
                is_clean = false;
            }
        }
        is_clean
    }
}

fn is_on(flag: &Field<Flag>) -> bool {
    flag.value().is_some_and(|flag| flag.0)
}
