//! The core types and algorithms of Tollgate, without a clock, IO or dependencies.
//!
//! - [`algo`]: the algorithms, one per file.
//! - [`decide()`]: the state transition that every store executes.
//! - [`Store`]: the interface of a store. It takes [`Charge`]s and returns [`Readings`].
//! - [`Evaluation`]: the status of every limit, computed from the readings.
//! - [`policy`]: maps a request's [`RequestAttributes`] to charges.
#![no_std]

extern crate alloc;

pub mod algo;
mod ambiguity;
pub mod attributes;
mod cell_bytes;
pub mod charge;
mod charge_id;
mod charge_position;
mod cost;
pub mod decide;
pub mod evaluation;
pub mod json_pointer;
pub mod key;
pub mod limit;
mod limit_error;
pub mod percent;
pub mod policy;
pub mod reading;
pub mod refusal;
pub mod replication_epochs;
pub mod reservation;
pub mod share;
pub mod shared_blob;
mod status_set;
pub mod store;
mod store_error;
pub mod time;

pub use attributes::{CertificateName, Headers, RequestAttributes};
pub use cell_bytes::charge_bytes;
pub use charge::{Charge, Deduplication, Operation};
pub use charge_id::ChargeId;
pub use charge_position::ChargePosition;
pub use cost::Cost;
pub use decide::{Cell, assess, decide};
pub use evaluation::{Evaluation, LimitStatus};
pub use key::{KeyedHash, Subject, Value};
pub use limit::{Algorithm, LeaseSpan, Limit, LimitMode, OnChange, Refusals, Unit, Visibility};
pub use limit_error::LimitError;
pub use percent::{Percent, PercentError};
pub use policy::{Policy, Priority};
pub use reading::{Admission, DecisionSource, Reading, Readings, StoredState};
pub use replication_epochs::ReplicationEpochs;
pub use reservation::{MAX_RESERVATIONS, OnExpiry, Reservation, ReservationTerms};
pub use shared_blob::{BLOB_DEADLINE, CasOutcome, SharedBlob};
pub use status_set::{STATUSES, StatusSet};
pub use store::{CellKey, CellTransfer, Store};
pub use store_error::StoreError;
pub use time::{MAX_EXACT, Millis, Timestamp};
