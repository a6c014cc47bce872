//! The pure heart of Tollgate: what every limit means, without a clock, IO or dependencies.
//!
//! - [`algo`]: the algorithms, one a file.
//! - [`decide()`]: the step that every store takes.
//! - [`Store`]: the port; [`Charge`]s go in, [`Readings`] come out.
//! - [`Verdict`]: what is told of them.
//! - [`policy`]: from a request's [`Facts`] to charges.
#![no_std]

extern crate alloc;

pub mod algo;
mod cell_bytes;
pub mod charge;
pub mod decide;
pub mod document;
pub mod facts;
pub mod histories;
pub mod hold;
pub mod key;
pub mod limit;
pub mod percent;
pub mod policy;
pub mod reading;
pub mod share;
pub mod store;
pub mod time;
pub mod verdict;

pub use charge::{Ask, Charge, ChargeId, Mark, Repeats};
pub use decide::{Cell, assess, decide};
pub use document::{DOCUMENT_DEADLINE, Document, Replaced};
pub use facts::{Facts, Headers};
pub use histories::Histories;
pub use hold::{Hold, HoldTerms, MAX_HOLDS, OnExpiry};
pub use key::{KeyedHash, Subject, Value};
pub use limit::{
    Algorithm, Cost, LeaseSpan, Limit, LimitError, LimitMode, OnChange, Refusals, Unit, Visibility,
};
pub use percent::{Percent, PercentError};
pub use policy::{Policy, Priority};
pub use reading::{Fit, Found, Reading, Readings, Source};
pub use store::{Cells, Place, Store, StoreError};
pub use time::{MAX_EXACT, Millis, Timestamp};
pub use verdict::{Standing, Verdict};
