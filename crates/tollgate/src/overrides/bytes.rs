//! The binary encoding in which a store keeps an override table.
//!
//! The encoding is written by hand, because this crate is built without serde, and because nodes of
//! different releases read the same table: each table is written in the oldest version that can
//! represent it, and unknown versions are errors.

use std::fmt;
use std::sync::Arc;

use tollgate_core::policy::Network;
use tollgate_core::{Subject, Timestamp};

use super::table::{OverrideTable, TableVersion};
use super::{Effect, MAX_OVERRIDES, Override, OverrideScope, OverrideTarget, SheddingTarget};

/// The newest version of the encoding. An incompatible encoding gets another number.
const FORM: u8 = 3;

/// The oldest version of the encoding, which cannot represent overrides that apply to all subjects,
/// or [`Effect::Counted`]. Version 2 cannot represent overrides of rules and of load shedding. A
/// table is written in the oldest version that can represent the table, so nodes with older
/// releases can read the table.
const OLDEST: u8 = 1;

impl OverrideTable {
    /// Encodes the table as bytes, in the oldest version that can represent it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let form = self.overrides().iter().map(|one| form_of(one)).max().unwrap_or(OLDEST);
        let mut out = vec![form];
        push_number(&mut out, self.version().changes);
        push_number(&mut out, self.version().drawn);
        self.overrides().iter().for_each(|one| push(&mut out, one));
        out
    }

    /// Decodes a table that [`to_bytes`](Self::to_bytes) encoded.
    ///
    /// # Errors
    /// [`TableError`] if the bytes are not an encoded table.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TableError> {
        let (form, mut rest) = bytes.split_first().ok_or(TableError::Garbled)?;
        if !(OLDEST..=FORM).contains(form) {
            return Err(TableError::Form(*form));
        }
        read(&mut rest).ok_or(TableError::Garbled)
    }
}

/// The reason why bytes are not a valid table of overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// The encoding has a version that this release does not support.
    Form(u8),
    /// The bytes are not a table in any supported version.
    Garbled,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(form) => write!(
                f,
                "the overrides have the format version {form}, and this node supports {FORM}: run \
                 the same version on every node"
            ),
            Self::Garbled => f.write_str(
                "the stored overrides have an unknown format: delete them, or find the \
                 program that writes their key",
            ),
        }
    }
}

impl std::error::Error for TableError {}

/// Returns the oldest version of the encoding that can represent the override.
fn form_of(one: &Override) -> u8 {
    match (&one.target.target, one.effect) {
        (OverrideTarget::Rule(_) | OverrideTarget::Shedding(_), _) => FORM,
        (OverrideTarget::AllSubjects, _) | (_, Effect::Counted) => 2,
        _ => OLDEST,
    }
}

fn push(out: &mut Vec<u8>, one: &Override) {
    push_text(out, one.target.limit.as_deref().unwrap_or_default());
    match &one.target.target {
        OverrideTarget::Subject(subject) => push_kind(out, 0, subject.as_bytes()),
        OverrideTarget::Value(pair) => push_kind(out, 1, pair.as_bytes()),
        OverrideTarget::Network { dimension, network } => {
            push_kind(out, 2, dimension.as_bytes());
            push_text(out, &network.to_string());
        }
        OverrideTarget::AllSubjects => push_kind(out, 3, &[]),
        OverrideTarget::Rule(name) => push_kind(out, 4, name.as_bytes()),
        OverrideTarget::Shedding(target) => push_kind(out, 5, target.name().as_bytes()),
    }
    let (kind, quota, burst) = match one.effect {
        Effect::Quota { quota, burst } => (0, quota, burst.unwrap_or_default()),
        Effect::Unlimited => (1, 0, 0),
        Effect::Blocked => (2, 0, 0),
        Effect::Counted => (3, 0, 0),
    };
    out.push(kind);
    push_number(out, quota);
    push_number(out, burst);
    push_number(out, one.expires_at.as_millis());
    push_text(out, &one.reason);
}

fn push_kind(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    out.push(kind);
    push_sized(out, bytes);
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_sized(out, text.as_bytes());
}

fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    // Names, subjects and reasons are bounded far below `u32::MAX`.
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_be_bytes());
}

fn read(rest: &mut &[u8]) -> Option<OverrideTable> {
    let version = TableVersion { changes: take_number(rest)?, drawn: take_number(rest)? };
    let mut overrides = Vec::new();
    while !rest.is_empty() && overrides.len() <= MAX_OVERRIDES {
        overrides.push(Arc::new(take(rest)?));
    }
    OverrideTable::new(version, overrides)
}

fn take(rest: &mut &[u8]) -> Option<Override> {
    let limit = take_text(rest)?;
    let limit = (!limit.is_empty()).then(|| limit.into());
    let target = match take_byte(rest)? {
        0 => OverrideTarget::Subject(Subject::from_bytes(take_sized(rest)?)?),
        1 => OverrideTarget::Value(Subject::from_bytes(take_sized(rest)?)?),
        2 => OverrideTarget::Network {
            dimension: take_text(rest)?.into(),
            network: Network::parse(take_text(rest)?).ok()?,
        },
        3 => {
            take_sized(rest).filter(|none| none.is_empty()).map(|_| OverrideTarget::AllSubjects)?
        }
        4 => OverrideTarget::Rule(take_text(rest)?.into()),
        5 => {
            let name = take_text(rest)?;
            let known = SheddingTarget::VARIANTS.into_iter().find(|target| target.name() == name);
            OverrideTarget::Shedding(known?)
        }
        _ => return None,
    };
    let (kind, quota, burst) = (take_byte(rest)?, take_number(rest)?, take_number(rest)?);
    let effect = match kind {
        0 => Effect::Quota { quota, burst: (burst > 0).then_some(burst) },
        1 => Effect::Unlimited,
        2 => Effect::Blocked,
        3 => Effect::Counted,
        _ => return None,
    };
    let expires_at = Timestamp::from_millis(take_number(rest)?);
    let reason = take_text(rest)?.into();
    Some(Override { target: OverrideScope { limit, target }, effect, expires_at, reason })
}

fn take_text<'b>(rest: &mut &'b [u8]) -> Option<&'b str> {
    std::str::from_utf8(take_sized(rest)?).ok()
}

fn take_sized<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, after) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (bytes, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_be_bytes(*number))
}

fn take_byte(rest: &mut &[u8]) -> Option<u8> {
    let (byte, after) = rest.split_first()?;
    *rest = after;
    Some(*byte)
}
