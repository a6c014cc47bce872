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
mod charge_id;
mod cost;
pub mod decide;
pub mod document;
pub mod facts;
pub mod histories;
pub mod hold;
pub mod key;
pub mod limit;
mod limit_error;
mod mark;
pub mod percent;
pub mod policy;
pub mod reading;
pub mod share;
pub mod store;
mod store_error;
pub mod time;
pub mod verdict;

pub use charge::{Ask, Charge, Repeats};
pub use charge_id::ChargeId;
pub use cost::Cost;
pub use decide::{Cell, assess, decide};
pub use document::{DOCUMENT_DEADLINE, Document, Replaced};
pub use facts::{Facts, Headers};
pub use histories::Histories;
pub use hold::{Hold, HoldTerms, MAX_HOLDS, OnExpiry};
pub use key::{KeyedHash, Subject, Value};
pub use limit::{Algorithm, LeaseSpan, Limit, LimitMode, OnChange, Refusals, Unit, Visibility};
pub use limit_error::LimitError;
pub use mark::Mark;
pub use percent::{Percent, PercentError};
pub use policy::{Policy, Priority};
pub use reading::{Fit, Found, Reading, Readings, Source};
pub use store::{Cells, Place, Store};
pub use store_error::StoreError;
pub use time::{MAX_EXACT, Millis, Timestamp};
pub use verdict::{Standing, Verdict};
