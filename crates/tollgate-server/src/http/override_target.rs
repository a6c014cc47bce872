//! Whom an override is about, by the names of the policy.

use tollgate::HashKey;
use tollgate::core::key::HASH;
use tollgate::core::policy::{Dimension, NameError, Network, Source};
use tollgate::core::{Policy, Subject, Value};
use tollgate::overrides::{Shedder, Target, Whom};
use tollgate_policy::nearest;

use super::check::names_nothing;
use super::problem::{Kind, Problem};
use super::shown::HASH_MARK;

/// Whose an override is, as it is said.
pub(super) enum Named<'n> {
    /// One subject's.
    Subject(Vec<(&'n str, Option<&'n str>)>),
    /// That of all who have one value.
    Group(Vec<(&'n str, Option<&'n str>)>),
    /// That of all subjects.
    Everybody,
    /// That of a rule.
    Rule(&'n str),
    /// That of load shedding.
    Shedding(Shedder),
}

/// The target of these names.
pub(super) fn target(
    policy: &Policy,
    key: &HashKey,
    limit: Option<&str>,
    named: &Named<'_>,
) -> Result<Target, Problem> {
    let names = Names { policy, key, limit };
    let whom = match named {
        Named::Subject(pairs) => names.subject(pairs)?,
        Named::Group(pairs) => match **pairs {
            [(name, value)] => names.group(name, value)?,
            _ => return Err(invalid("a group is all who have one value: name one")),
        },
        Named::Everybody => names.dimensions().map(|_| Whom::Everybody)?,
        Named::Rule(_) | Named::Shedding(_) if limit.is_some() => {
            return Err(invalid("a switch of a rule or of shedding is of no single limit"));
        }
        Named::Rule(name) => names.rule(name)?,
        Named::Shedding(shedder) => Whom::Shedding(*shedder),
    };
    Ok(Target { limit: limit.map(Into::into), whom })
}

/// What these names may have meant in a policy before this one.
pub(super) fn past_targets(
    key: &HashKey,
    limit: Option<&str>,
    named: &Named<'_>,
) -> impl Iterator<Item = Target> + use<> {
    let pair = |(name, value): &(&str, Option<&str>)| {
        let value = match value {
            None => Value::Absent,
            Some(text) => hash(text).map_or(Value::Secret(text.as_bytes()), Value::Hashed),
        };
        Subject::new([(*name, value)], key)
    };
    let whom = match named {
        Named::Subject(pairs) => {
            let encoding: Vec<u8> =
                pairs.iter().flat_map(|one| pair(one).as_bytes().to_vec()).collect();
            vec![Whom::subject(&Subject::from_bytes(&encoding).unwrap_or_default())]
        }
        Named::Group(pairs) => pairs.iter().flat_map(|one| of_group(one, pair(one))).collect(),
        Named::Everybody => vec![Whom::Everybody],
        Named::Rule(name) => vec![Whom::Rule((*name).into())],
        Named::Shedding(shedder) => vec![Whom::Shedding(*shedder)],
    };
    let limit: Option<Box<str>> = limit.map(Into::into);
    whom.into_iter().map(move |whom| Target { limit: limit.clone(), whom })
}

/// All who have this value, or whose address lies there.
fn of_group((name, value): &(&str, Option<&str>), pair: Subject) -> Vec<Whom> {
    let network = value.and_then(|text| Network::parse(text).ok());
    let network = network.map(|network| Whom::Network { dimension: (*name).into(), network });
    network.into_iter().chain([Whom::Value(pair)]).collect()
}

/// What names mean.
struct Names<'n> {
    policy: &'n Policy,
    key: &'n HashKey,
    limit: Option<&'n str>,
}

impl Names<'_> {
    /// The subject with these values: all that the limit counts by.
    fn subject(&self, pairs: &[(&str, Option<&str>)]) -> Result<Whom, Problem> {
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
            return Err(self.told(&NameError::Missing(missing.name.clone())));
        }
        if self.limit.is_none() && pairs.is_empty() {
            return Err(invalid("name a subject, or the limit whose only counter is meant"));
        }
        // Pairs one after the other are a whole encoding.
        Ok(Whom::subject(&Subject::from_bytes(&encoding).unwrap_or_default()))
    }

    fn rule(&self, name: &str) -> Result<Whom, Problem> {
        let names = || self.policy.rules().iter().map(|rule| &*rule.name);
        if names().any(|known| known == name) {
            return Ok(Whom::Rule(name.into()));
        }
        let near = nearest(name, names());
        let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        Err(invalid(format!("there is no rule {name:?}{near}")))
    }

    /// All who have this value, or whose address lies in this network.
    fn group(&self, name: &str, value: Option<&str>) -> Result<Whom, Problem> {
        let dimension = self.dimension(name)?;
        let (Source::ClientAddress { ipv4_prefix, ipv6_prefix }, Some(text)) =
            (&dimension.source, value.filter(|text| hash(text).is_none()))
        else {
            return Ok(Whom::Value(self.pair(dimension, value)?));
        };
        let told = |error| Problem::new(Kind::InvalidSubject, format!("{text:?}: {error}"));
        let network = Network::parse(text).map_err(told)?;
        let kept = if network.is_ipv4() { *ipv4_prefix } else { *ipv6_prefix };
        // Of a single address that which is kept of it is meant.
        let is_single = !text.contains('/');
        let widened = network.within(kept).filter(|_| is_single);
        let network = widened.unwrap_or(network);
        if network.prefix() > kept {
            let detail =
                format!("{name:?} is counted by its first {kept} bits, so {text} is nobody");
            return Err(Problem::new(Kind::InvalidSubject, detail));
        }
        Ok(Whom::Network { dimension: name.into(), network })
    }

    /// The veiled pair of a value, or of its hash.
    fn pair(&self, dimension: &Dimension, value: Option<&str>) -> Result<Subject, Problem> {
        if let Some(hash) = value.and_then(hash) {
            return Ok(Subject::new([(&*dimension.name, Value::Hashed(hash))], self.key));
        }
        // What is kept of an address is shown as a network, and meant by it.
        let address = matches!(dimension.source, Source::ClientAddress { .. });
        let shown = value.and_then(|text| text.split_once('/')).filter(|_| address);
        let value = shown.map_or(value, |(address, _)| Some(address));
        let pair = dimension.pair(value, self.key).map_err(|error| self.told(&error))?;
        Ok(pair.veiled(self.key))
    }

    /// What the limit counts by, or any limit.
    fn dimensions(&self) -> Result<Vec<&Dimension>, Problem> {
        let all = self.policy.dimensions();
        let Some(name) = self.limit else { return Ok(all.iter().collect()) };
        let limits = self.policy.limits();
        let limit = limits.iter().find(|limit_for| limit_for.limit.name() == name);
        let limit = limit.ok_or_else(|| self.told(&NameError::Limit(name.into())))?;
        Ok(limit.per.iter().filter_map(|index| all.get(*index)).collect())
    }

    fn dimension(&self, name: &str) -> Result<&Dimension, Problem> {
        let found = self.dimensions()?.into_iter().find(|one| *one.name == *name);
        found.ok_or_else(|| self.told(&NameError::Dimension(name.into())))
    }

    fn told(&self, error: &NameError) -> Problem {
        names_nothing(self.policy, error)
    }
}

/// The hash that a text shows.
fn hash(text: &str) -> Option<[u8; HASH]> {
    let digits = text.strip_prefix(HASH_MARK)?;
    let is_hash = digits.len() == 2 * HASH && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = is_hash.then(|| u128::from_str_radix(digits, 16).ok())??;
    Some(number.to_be_bytes())
}

pub(super) fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(Kind::InvalidOverride, detail.into())
}
