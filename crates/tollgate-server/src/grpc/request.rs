//! Requests of the service, validated before anything is charged.

use std::fmt;
use std::ops::Range;

use tollgate::model::Cost;
use tollgate::model::policy::descriptors::{Descriptor, Hits, MAX_DEPTH, Rate, TimeUnit};
use tonic::Status;

use super::proto::{RateLimitDescriptor, RateLimitOverride, RateLimitRequest, RateLimitUnit};

/// The most descriptors that a request may have.
pub const MAX_DESCRIPTORS: usize = 64;

/// The most entries that a descriptor may have.
pub const MAX_ENTRIES: usize = MAX_DEPTH;

/// The longest key of an entry, in bytes. Values are limited only by the message size, because they
/// are hashed.
pub const MAX_KEY_BYTES: usize = 256;

/// A request of Envoy's rate limit service that has been validated.
#[derive(Debug)]
pub(super) struct ParsedRequest<'r> {
    pub(super) domain: &'r str,
    entries: Vec<(&'r str, &'r [u8])>,
    descriptors: Vec<ParsedDescriptor>,
}

#[derive(Debug)]
struct ParsedDescriptor {
    entries: Range<usize>,
    count: Count,
    rate: Option<Rate>,
}

/// The units that a descriptor charges or refunds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    hits: Hits,
    size: Size,
}

/// Whether a number of hits is at most the largest cost that limits can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// The number of hits is within the range that limits can count.
    Countable,
    /// The number of hits is larger than any limit can count, so no limit admits it.
    Excessive,
}

impl<'r> ParsedRequest<'r> {
    /// Reads and validates `request`.
    pub(super) fn read(request: &'r RateLimitRequest) -> Result<Self, InvalidRequest> {
        if request.domain.is_empty() {
            return Err(InvalidRequest::NoDomain);
        }
        let count = request.descriptors.len();
        if count == 0 {
            return Err(InvalidRequest::NoDescriptors);
        }
        if count > MAX_DESCRIPTORS {
            return Err(InvalidRequest::ManyDescriptors(count));
        }
        let (mut entries, mut descriptors) = (Vec::new(), Vec::with_capacity(count));
        for (index, descriptor) in request.descriptors.iter().enumerate() {
            let first = entries.len();
            read_entries(descriptor, &mut entries)
                .map_err(|what| InvalidRequest::At(index, what))?;
            let rate = descriptor.limit.as_ref().map(rate).transpose();
            descriptors.push(ParsedDescriptor {
                entries: first..entries.len(),
                count: Count::new(descriptor, request.hits_addend),
                rate: rate.map_err(|what| InvalidRequest::At(index, what))?,
            });
        }
        Ok(Self { domain: &request.domain, entries, descriptors })
    }

    /// Returns the descriptors in the order of the request.
    pub(super) fn descriptors(&self) -> Vec<Descriptor<'_, &'r [u8]>> {
        let descriptor = |one: &ParsedDescriptor| Descriptor {
            entries: &self.entries[one.entries.clone()],
            hits: one.count.hits,
            rate: one.rate,
        };
        self.descriptors.iter().map(descriptor).collect()
    }

    /// Returns the hits of the descriptor at `index`: the units that it charges or refunds.
    pub(super) fn hits(&self, index: usize) -> Hits {
        self.descriptors[index].count.hits
    }

    /// Returns whether the hits of the descriptor at `index` are at most the largest cost.
    pub(super) fn size(&self, index: usize) -> Size {
        self.descriptors[index].count.size
    }
}

impl Count {
    /// Returns the units of `descriptor`. If the descriptor has no number of hits of its own, the
    /// number is `otherwise`, which is the `hits_addend` of the request, or 1 if that is 0. A
    /// number above the largest cost is replaced by the largest cost, so a refund of such a number
    /// returns all charged units.
    fn new(descriptor: &RateLimitDescriptor, otherwise: u32) -> Self {
        let units = descriptor.hits_addend.unwrap_or_else(|| otherwise.max(1).into());
        let cost = Cost::new(units);
        let size = if cost.is_some() { Size::Countable } else { Size::Excessive };
        let cost = cost.or_else(|| Cost::new(tollgate::model::MAX_EXACT)).unwrap_or_default();
        let hits = match descriptor.is_negative_hits {
            true => Hits::Refund(cost),
            false => Hits::Charge(cost),
        };
        Self { hits, size }
    }
}

fn read_entries<'r>(
    descriptor: &'r RateLimitDescriptor,
    entries: &mut Vec<(&'r str, &'r [u8])>,
) -> Result<(), InvalidDescriptor> {
    match descriptor.entries.len() {
        0 => return Err(InvalidDescriptor::NoEntries),
        many if many > MAX_ENTRIES => return Err(InvalidDescriptor::ManyEntries(many)),
        _ => {}
    }
    for (index, entry) in descriptor.entries.iter().enumerate() {
        match entry.key.len() {
            0 => return Err(InvalidDescriptor::NoKey(index)),
            long if long > MAX_KEY_BYTES => return Err(InvalidDescriptor::LongKey(index, long)),
            _ => entries.push((&entry.key, &entry.value)),
        }
    }
    Ok(())
}

fn rate(limit: &RateLimitOverride) -> Result<Rate, InvalidDescriptor> {
    let unit = match RateLimitUnit::try_from(limit.unit) {
        Ok(RateLimitUnit::Second) => TimeUnit::Second,
        Ok(RateLimitUnit::Minute) => TimeUnit::Minute,
        Ok(RateLimitUnit::Hour) => TimeUnit::Hour,
        Ok(RateLimitUnit::Day) => TimeUnit::Day,
        Ok(RateLimitUnit::Month) => TimeUnit::Month,
        Ok(RateLimitUnit::Year) => TimeUnit::Year,
        Ok(RateLimitUnit::Unknown) | Err(_) => return Err(InvalidDescriptor::Unit(limit.unit)),
    };
    Ok(Rate { requests: limit.requests_per_unit, unit })
}

/// The reason why a request is invalid. Nothing was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidRequest {
    NoDomain,
    NoDescriptors,
    ManyDescriptors(usize),
    /// The descriptor at this index is invalid.
    At(usize, InvalidDescriptor),
}

/// The reason why a descriptor is invalid. The numbers in a variant are the index of an entry, a
/// count, or a length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidDescriptor {
    NoEntries,
    ManyEntries(usize),
    NoKey(usize),
    LongKey(usize, usize),
    Unit(i32),
}

impl fmt::Display for InvalidRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDomain => f.write_str("the domain is empty: send a domain of the policy"),
            Self::NoDescriptors => f.write_str("there are no descriptors: send at least one"),
            Self::ManyDescriptors(count) => {
                write!(f, "there are {count} descriptors: at most {MAX_DESCRIPTORS} are allowed")
            }
            Self::At(index, what) => write!(f, "descriptors[{index}]{what}"),
        }
    }
}

impl fmt::Display for InvalidDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEntries => f.write_str(" has no entries: send at least one"),
            Self::ManyEntries(count) => {
                write!(f, " has {count} entries: at most {MAX_ENTRIES} are allowed")
            }
            Self::NoKey(entry) => write!(f, ".entries[{entry}] has an empty key"),
            Self::LongKey(entry, bytes) => {
                write!(f, ".entries[{entry}] has a key of {bytes} bytes: at most {MAX_KEY_BYTES}")
            }
            Self::Unit(unit) => {
                write!(f, ".limit has the unknown unit {unit}: use 1 (SECOND) to 6 (YEAR)")
            }
        }
    }
}

impl From<InvalidRequest> for Status {
    fn from(invalid: InvalidRequest) -> Self {
        Self::invalid_argument(invalid.to_string())
    }
}
