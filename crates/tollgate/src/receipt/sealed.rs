//! The text of a receipt, which a client keeps and presents later. The text is opaque, and invalid
//! if one character is changed.
//!
//! The text is URL-safe base64 of a version and of encrypted data: the charges, and the time until
//! which the charges can be refunded. The data are encrypted under the deployment's key
//! (ChaCha20-Poly1305), so only nodes with this key can read the data. Subjects are encoded as
//! stores receive them, with credentials as keyed hashes.
//!
//! The layout of the data is written by hand, because this crate is built without serde. Instead of
//! a limit, the data contain its digest, which the reading node looks up in its policy. A format
//! for sealed tokens, such as JWE, would add a header in JSON to each text.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate_core::StatusSet;
use tollgate_core::charge::{ChargeId, ChargePosition, Deduplication};
use tollgate_core::policy::ResponseTerms;
use tollgate_core::policy::outcome::ConditionalCost;
use tollgate_core::{Algorithm, Cost, Limit, Policy, Subject, Timestamp, decide};

use super::{Entry, Purpose, Receipt};
use crate::hash_key::{HashKey, SEAL_BYTES};

/// The version of a receipt of charges. [`RESERVED`] is the version of a receipt of a reservation.
const VERSION: u8 = 3;
const RESERVED: u8 = 4;

/// The number of bytes at the start of a sealed receipt that are not encrypted: the version.
const CLEAR: usize = 1;

/// The number of bytes before the entries: version, id and expiry.
const HEAD: usize = 1 + 16 + 8;
/// The number of bytes of an entry without its subject: limit, kind, cost, position and length.
const ENTRY: usize = 16 + 1 + 8 + 8 + 4;

/// The flag in the byte of an entry's algorithm that states that parts of the cost depend on the
/// status code of the response.
const CONDITIONAL: u8 = 0x80;

/// The flag in the byte of an entry's algorithm that states that a value of the request selected
/// the quota.
const BY_VALUE: u8 = 0x40;

/// The flag in the byte of an entry's algorithm that states that the limit could not refuse the
/// request.
const NOT_ENFORCED: u8 = 0x20;

/// A receipt that was read from its text.
pub(crate) struct UnsealedReceipt {
    /// The receipt, without entries of limits that the policy no longer has.
    pub(crate) receipt: Receipt,
    /// The time from which no part of the receipt can be refunded.
    pub(crate) expires_at: Timestamp,
}

impl Receipt {
    /// Returns the sealed text of this receipt, whether it is of charges or of a reservation. The
    /// charges were made at `now`. Every client that has the text can refund the charges.
    pub(crate) fn seal(&self, key: &HashKey, now: Timestamp) -> String {
        let (version, expires_at) = match self.purpose {
            Purpose::Charge => {
                (VERSION, self.entries.iter().map(|it| it.refundable_until(now)).max())
            }
            Purpose::Reservation(until) => {
                (RESERVED, self.entries.iter().map(|it| it.held_until(until, now)).max())
            }
        };
        let lengths = self.entries.iter().map(|entry| ENTRY + entry.subject.as_bytes().len());
        let mut bytes = Vec::with_capacity(HEAD + lengths.sum::<usize>() + SEAL_BYTES);
        bytes.push(version);
        bytes.extend(self.id.0.to_be_bytes());
        bytes.extend(expires_at.unwrap_or(now).as_millis().to_be_bytes());
        for entry in &self.entries {
            entry.write(&mut bytes);
        }
        key.seal(&mut bytes, CLEAR);
        let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
        URL_SAFE_NO_PAD.encode_string(bytes, &mut text);
        text
    }

    /// Reads the text that [`seal`](Self::seal) wrote under the same key, on this node or on
    /// another node. Leaves out the limits that `policy` no longer has. A client can present a text
    /// twice, so the store deduplicates the refunds by the charge's id.
    pub(crate) fn open(
        text: &str,
        key: &HashKey,
        policy: &Policy,
    ) -> Result<UnsealedReceipt, ReceiptError> {
        let mut bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ReceiptError::Garbled)?;
        let version = match bytes.first() {
            None => return Err(ReceiptError::Garbled),
            Some(&version @ (VERSION | RESERVED)) => version,
            Some(version) => return Err(ReceiptError::Version(*version)),
        };
        if bytes.len() < CLEAR + SEAL_BYTES {
            return Err(ReceiptError::Garbled);
        }
        let charges = key.unseal(&mut bytes, CLEAR).ok_or(ReceiptError::Foreign)?;
        // A text that can be decrypted is well formed, unless another program uses the same key.
        read(version, charges, policy).ok_or(ReceiptError::Garbled)
    }
}

fn read(version: u8, mut rest: &[u8], policy: &Policy) -> Option<UnsealedReceipt> {
    let id = ChargeId(u128::from_be_bytes(take(&mut rest)?));
    let expires_at = Timestamp::from_millis(u64::from_be_bytes(take(&mut rest)?));
    let purpose = match version {
        RESERVED => Purpose::Reservation(expires_at),
        _ => Purpose::Charge,
    };
    let (entries, deduplication) = (Vec::new(), Deduplication::ById);
    let mut receipt = Receipt { id, entries, deduplication, purpose, charged_at: None };
    while !rest.is_empty() {
        if let Some(entry) = Entry::read(&mut rest, policy)? {
            receipt.push(entry);
        }
    }
    Some(UnsealedReceipt { receipt, expires_at })
}

impl Entry {
    /// Returns the time until which the charge can be refunded. A permit that is not renewed
    /// expires without a refund.
    fn refundable_until(&self, charged_at: Timestamp) -> Timestamp {
        match self.limit.algorithm() {
            Algorithm::Concurrency(limit) => charged_at.after(limit.permit_ttl()),
            _ => decide::refundable_until(&self.limit, self.position),
        }
    }

    /// Returns the time at which the limit of this entry releases the reservation. The caller asked
    /// at `asked_at` for a reservation until `until`.
    pub(super) fn held_until(&self, until: Timestamp, asked_at: Timestamp) -> Timestamp {
        match self.limit.algorithm() {
            Algorithm::Concurrency(limit) => asked_at.after(limit.permit_ttl()),
            _ => self.limit.reservation_terms().end(until, asked_at),
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let subject = self.subject.as_bytes();
        // The length always fits: a subject is a few short values.
        let length = u32::try_from(subject.len()).unwrap_or(u32::MAX);
        bytes.extend(self.limit.state_digest().to_be_bytes());
        let estimates = self.estimates.iter().map(|one| (one.reserved, &one.terms));
        let parts = estimates.chain(self.conditions.iter().map(|one| (one.cost, &one.terms)));
        let is_conditional = |part: &(Cost, &ResponseTerms)| *part.1 != ResponseTerms::default();
        // The number of parts always fits: a request matches few rules.
        let parts: Vec<_> = parts.filter(is_conditional).take(usize::from(u8::MAX)).collect();
        let flag = if parts.is_empty() { 0 } else { CONDITIONAL };
        // A longer value is left out: no policy has one.
        let value =
            self.limit.quota_value().and_then(|it| Some((u8::try_from(it.len()).ok()?, it)));
        let by_value = if value.is_some() { BY_VALUE } else { 0 };
        let not_enforced = if self.is_enforced { 0 } else { NOT_ENFORCED };
        bytes.push(kind(&self.limit) | flag | by_value | not_enforced);
        bytes.extend(self.cost.get().to_be_bytes());
        bytes.extend(self.position.0.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend(subject);
        if !parts.is_empty() {
            bytes.push(u8::try_from(parts.len()).unwrap_or(u8::MAX));
            parts.iter().for_each(|(cost, terms)| write_part(*cost, terms, bytes));
        }
        if let Some((length, value)) = value {
            bytes.push(length);
            bytes.extend(value.as_bytes());
        }
    }

    /// Reads one entry. Returns `None` if the entry is incomplete. Returns `Some(None)` if the
    /// policy no longer has a limit with the same algorithm and the same state digest, because the
    /// position of the entry has no meaning for any other limit.
    fn read(rest: &mut &[u8], policy: &Policy) -> Option<Option<Self>> {
        let digest = u128::from_be_bytes(take(rest)?);
        let [flagged_kind] = take(rest)?;
        let charged_kind = flagged_kind & !(CONDITIONAL | BY_VALUE | NOT_ENFORCED);
        let is_enforced = flagged_kind & NOT_ENFORCED == 0;
        let cost = Cost::new(u64::from_be_bytes(take(rest)?))?;
        let position = ChargePosition(u64::from_be_bytes(take(rest)?));
        let length = usize::try_from(u32::from_be_bytes(take(rest)?)).ok()?;
        let (subject, after) = rest.split_at_checked(length)?;
        *rest = after;
        let subject = Subject::from_bytes(subject)?;
        let conditions = match flagged_kind & CONDITIONAL {
            0 => Vec::new(),
            _ => {
                let [parts] = take(rest)?;
                (0..parts).map(|_| read_part(rest)).collect::<Option<_>>()?
            }
        };
        let value = match flagged_kind & BY_VALUE {
            0 => None,
            _ => {
                let [length] = take(rest)?;
                let (value, after) = rest.split_at_checked(usize::from(length))?;
                *rest = after;
                Some(value)
            }
        };
        let is_it =
            |limit: &&Arc<Limit>| limit.state_digest() == digest && kind(limit) == charged_kind;
        let limits = policy.limits().iter().map(|binding| &binding.limit);
        let limit =
            limits.flat_map(|limit| [limit].into_iter().chain(limit.candidate())).find(is_it);
        Some(limit.map(|limit| {
            let quotas = value.and_then(|value| policy.quotas_of(limit)?.of(value));
            let own = || Some(Arc::new(limit.of_tenant_value(value?)?));
            let limit = quotas.cloned().or_else(own).unwrap_or_else(|| Arc::clone(limit));
            let (earlier, estimates) = (0, Vec::new());
            Self { limit, subject, cost, position, earlier, estimates, conditions, is_enforced }
        }))
    }
}

/// Appends to `bytes` a part of a cost that depends on the status code of the response.
fn write_part(cost: Cost, terms: &ResponseTerms, bytes: &mut Vec<u8>) {
    bytes.extend(cost.get().to_be_bytes());
    for set in [&terms.counted, &terms.refund] {
        bytes.push(u8::from(set.is_some()));
        bytes.extend(set.iter().flat_map(|set| set.to_bytes()));
    }
}

fn read_part(rest: &mut &[u8]) -> Option<ConditionalCost> {
    let cost = Cost::new(u64::from_be_bytes(take(rest)?))?;
    let set = |rest: &mut &[u8]| match take(rest)? {
        [0] => Some(None),
        _ => Some(Some(Arc::new(StatusSet::from_bytes(take(rest)?)))),
    };
    let (counted, refund) = (set(rest)?, set(rest)?);
    Some(ConditionalCost { cost, terms: ResponseTerms { counted, refund } })
}

/// Returns the number of the limit's algorithm. The number of an algorithm never changes.
const fn kind(limit: &Limit) -> u8 {
    match limit.algorithm() {
        Algorithm::FixedWindow(_) => 1,
        Algorithm::SlidingWindow(_) => 2,
        Algorithm::TwoBucket(_) => 3,
        Algorithm::SlidingLog(_) => 4,
        Algorithm::TokenBucket(_) => 5,
        Algorithm::Concurrency(_) => 6,
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*taken)
}

/// The reason why a text is not a valid receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiptError {
    /// The text is not the encoding of a receipt.
    Garbled,
    /// The receipt has a version that this release does not support.
    Version(u8),
    /// The receipt was changed, or sealed with another key.
    Foreign,
    /// The receipt is of a charge, but a receipt of a reservation is needed.
    NotReserved,
    /// The receipt is of a reservation. A reservation is settled by a cost and not by a status.
    Reserved,
}

impl fmt::Display for ReceiptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Garbled => f.write_str("this is not a receipt: send the text unchanged"),
            Self::Version(version) => write!(
                f,
                "the receipt has version {version}, and {VERSION} and {RESERVED} are read: refund it \
                 through a node of the version that issued it"
            ),
            Self::NotReserved => f.write_str(
                "the receipt is of a charge, not of a reservation: refund it, or keep the charge",
            ),
            Self::Reserved => f.write_str(
                "the receipt is of a reservation, which a status does not settle: settle its cost, \
                 or release it",
            ),
            Self::Foreign => f.write_str(
                "the receipt was changed, or comes from a deployment with another key: nodes that \
                 accept each other's receipts need the same `secret` in their policy files",
            ),
        }
    }
}

impl std::error::Error for ReceiptError {}
