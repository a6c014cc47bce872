//! The target of an override, given by names of the policy.

use tollgate::HashKey;
use tollgate::model::key::HASH;
use tollgate::model::policy::{Dimension, NameError, Network, SubjectSource};
use tollgate::model::{Policy, Subject, Value};
use tollgate::overrides::{OverrideScope, OverrideTarget, SheddingTarget};
use tollgate_policy::suggest;

use super::check::unknown_name;
use super::problem::{Kind, Problem};
use super::redaction::HASH_MARK;

/// The target of an override, as a request names it.
pub(super) enum TargetSelector<'n> {
    /// One subject, as pairs of a dimension and its value. The value is `None` for a dimension that
    /// the subject lacks.
    Subject(Vec<(&'n str, Option<&'n str>)>),
    /// All subjects that share one value, as a pair of a dimension and this value.
    Group(Vec<(&'n str, Option<&'n str>)>),
    /// All subjects.
    AllSubjects,
    /// The rule with this name.
    Rule(&'n str),
    /// Load shedding, all of it or one kind.
    Shedding(SheddingTarget),
}

/// Returns the target that `named` selects, together with the limit of the override: the limit
/// called `limit`, or every limit if `limit` is `None`. `key` hashes the values of subjects.
pub(super) fn target(
    policy: &Policy,
    key: &HashKey,
    limit: Option<&str>,
    named: &TargetSelector<'_>,
) -> Result<OverrideScope, Problem> {
    let names = NameResolver { policy, key, limit };
    let whom = match named {
        TargetSelector::Subject(pairs) => names.subject(pairs)?,
        TargetSelector::Group(pairs) => match **pairs {
            [(name, value)] => names.group(name, value)?,
            _ => return Err(invalid("a group has exactly one value: send one")),
        },
        TargetSelector::AllSubjects => names.dimensions().map(|_| OverrideTarget::AllSubjects)?,
        TargetSelector::Rule(_) | TargetSelector::Shedding(_) if limit.is_some() => {
            return Err(invalid(
                "an override of a rule or of load shedding has no limit: leave it out",
            ));
        }
        TargetSelector::Rule(name) => names.rule(name)?,
        TargetSelector::Shedding(shedder) => OverrideTarget::Shedding(*shedder),
    };
    Ok(OverrideScope { limit: limit.map(Into::into), target: whom })
}

/// Returns the targets that the names of a request could have meant under an earlier policy.
pub(super) fn past_targets(
    key: &HashKey,
    limit: Option<&str>,
    named: &TargetSelector<'_>,
) -> impl Iterator<Item = OverrideScope> + use<> {
    let pair = |(name, value): &(&str, Option<&str>)| {
        let value = match value {
            None => Value::Absent,
            Some(text) => hash(text).map_or(Value::Secret(text.as_bytes()), Value::Hashed),
        };
        Subject::new([(*name, value)], key)
    };
    let whom = match named {
        TargetSelector::Subject(pairs) => {
            let encoding: Vec<u8> =
                pairs.iter().flat_map(|one| pair(one).as_bytes().to_vec()).collect();
            vec![OverrideTarget::subject(&Subject::from_bytes(&encoding).unwrap_or_default())]
        }
        TargetSelector::Group(pairs) => {
            pairs.iter().flat_map(|one| of_group(one, pair(one))).collect()
        }
        TargetSelector::AllSubjects => vec![OverrideTarget::AllSubjects],
        TargetSelector::Rule(name) => vec![OverrideTarget::Rule((*name).into())],
        TargetSelector::Shedding(shedder) => vec![OverrideTarget::Shedding(*shedder)],
    };
    let limit: Option<Box<str>> = limit.map(Into::into);
    whom.into_iter().map(move |whom| OverrideScope { limit: limit.clone(), target: whom })
}

/// Returns the targets that a group can have: all subjects with this value, and, if the value is a
/// network, all subjects with an address in this network. `pair` is the hashed value.
fn of_group((name, value): &(&str, Option<&str>), pair: Subject) -> Vec<OverrideTarget> {
    let network = value.and_then(|text| Network::parse(text).ok());
    let network =
        network.map(|network| OverrideTarget::Network { dimension: (*name).into(), network });
    network.into_iter().chain([OverrideTarget::Value(pair)]).collect()
}

/// Resolves the names in a request to the targets that these names have under a policy.
struct NameResolver<'n> {
    policy: &'n Policy,
    key: &'n HashKey,
    limit: Option<&'n str>,
}

impl NameResolver<'_> {
    /// Returns the subject with the values in `pairs`. If a limit is named, a value is required for
    /// each dimension that the limit counts by.
    fn subject(&self, pairs: &[(&str, Option<&str>)]) -> Result<OverrideTarget, Problem> {
        let mut encoding = Vec::new();
        for (name, value) in pairs {
            let pair = self.pair(self.dimension(name)?, *value)?;
            encoding.extend_from_slice(pair.as_bytes());
        }
        let is_named = |one: &&Dimension| pairs.iter().any(|(name, _)| **name == *one.name);
        let missing = match self.limit {
            Some(_) => self.dimensions()?.into_iter().find(|one| !is_named(one)),
            None => None,
        };
        if let Some(missing) = missing {
            return Err(self.name_error(&NameError::Missing(missing.name.clone())));
        }
        if self.limit.is_none() && pairs.is_empty() {
            return Err(invalid(
                "send a subject, or the name of a limit that has only one counter",
            ));
        }
        // A subject is encoded as its encoded pairs, one after the other.
        Ok(OverrideTarget::subject(&Subject::from_bytes(&encoding).unwrap_or_default()))
    }

    fn rule(&self, name: &str) -> Result<OverrideTarget, Problem> {
        let names = || self.policy.rules().iter().map(|rule| &*rule.name);
        if names().any(|known| known == name) {
            return Ok(OverrideTarget::Rule(name.into()));
        }
        let near = suggest(name, names());
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        Err(invalid(format!("there is no rule {name:?}{near}")))
    }

    /// Returns the group of all subjects that have `value` in the dimension `name`. If the
    /// dimension is the client's address, `value` can be a network, and the group has all addresses
    /// in this network.
    fn group(&self, name: &str, value: Option<&str>) -> Result<OverrideTarget, Problem> {
        let dimension = self.dimension(name)?;
        let (SubjectSource::ClientAddress { ipv4_prefix, ipv6_prefix }, Some(text)) =
            (&dimension.source, value.filter(|text| hash(text).is_none()))
        else {
            return Ok(OverrideTarget::Value(self.pair(dimension, value)?));
        };
        let invalid = |error| Problem::new(Kind::InvalidSubject, format!("{text:?}: {error}"));
        let network = Network::parse(text).map_err(invalid)?;
        let kept = if network.is_ipv4() { *ipv4_prefix } else { *ipv6_prefix };
        // A single address means the network that the policy derives from the address.
        let is_single = !text.contains('/');
        let widened = network.within(kept).filter(|_| is_single);
        let network = widened.unwrap_or(network);
        if network.prefix() > kept {
            let detail =
                format!("{name:?} counts networks of {kept} bits, so {text} matches no subject");
            return Err(Problem::new(Kind::InvalidSubject, detail));
        }
        Ok(OverrideTarget::Network { dimension: name.into(), network })
    }

    /// Returns the hashed pair of a dimension and `value`. `value` can be a hash already.
    fn pair(&self, dimension: &Dimension, value: Option<&str>) -> Result<Subject, Problem> {
        if let Some(hash) = value.and_then(hash) {
            return Ok(Subject::new([(&*dimension.name, Value::Hashed(hash))], self.key));
        }
        // The policy may keep only a part of an address. This part is displayed as a network, and
        // accepted in the same form.
        let address = matches!(dimension.source, SubjectSource::ClientAddress { .. });
        let shown = value.and_then(|text| text.split_once('/')).filter(|_| address);
        let value = shown.map_or(value, |(address, _)| Some(address));
        let pair = dimension
            .pair(value, self.policy.paths().case, self.key)
            .map_err(|error| self.name_error(&error))?;
        Ok(pair.veiled(self.key))
    }

    /// Returns the dimensions that the limit counts by, or the dimensions of all limits if no limit
    /// is named.
    fn dimensions(&self) -> Result<Vec<&Dimension>, Problem> {
        let all = self.policy.dimensions();
        let Some(name) = self.limit else { return Ok(all.iter().collect()) };
        let limits = self.policy.limits();
        let limit = limits.iter().find(|binding| binding.limit.name() == name);
        let limit = limit.ok_or_else(|| self.name_error(&NameError::Limit(name.into())))?;
        Ok(limit.per.iter().filter_map(|index| all.get(*index)).collect())
    }

    fn dimension(&self, name: &str) -> Result<&Dimension, Problem> {
        let found = self.dimensions()?.into_iter().find(|one| *one.name == *name);
        found.ok_or_else(|| self.name_error(&NameError::Dimension(name.into())))
    }

    fn name_error(&self, error: &NameError) -> Problem {
        unknown_name(self.policy, error)
    }
}

/// Parses a hash in its displayed form. Returns `None` if `text` is not such a hash.
fn hash(text: &str) -> Option<[u8; HASH]> {
    let digits = text.strip_prefix(HASH_MARK)?;
    let is_hash = digits.len() == 2 * HASH && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hash.then(|| u128::from_str_radix(digits, 16).ok())??;
    Some(number.to_be_bytes())
}

pub(super) fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::InvalidOverride, detail.into())
}
