//! The decision of a check: admitted or refused, with the status of a limit.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate_core::{Admission, ChargeId, ChargePosition, Cost, StoreError};

use super::status::Status;

/// The decision of a [`RateLimiter`](crate::RateLimiter) about one key.
///
/// ```
/// use tollgate::{Decision, Quota, RateLimiter};
///
/// let limiter = RateLimiter::per_key(Quota::per_minute(2));
/// match limiter.try_check("alice") {
///     Decision::Admitted(admitted) => assert_eq!(admitted.remaining(), 1),
///     Decision::Refused(refused) => println!("retry after {:?}", refused.retry_after()),
/// }
/// ```
#[derive(Debug)]
#[must_use = "a decision that nobody reads limits nothing"]
pub enum Decision {
    /// The key was charged.
    Admitted(Admitted),
    /// A limit has too few units left. The key was not charged.
    Refused(Refused),
}

/// An admitted charge. Pass this value to [`RateLimiter::refund`](crate::RateLimiter::refund) to
/// return its units, or to [`RateLimiter::release`](crate::RateLimiter::release) to return only its
/// units of concurrent quotas.
///
/// The methods report the status of the limit that has the smallest share of its units left.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Quota, RateLimiter};
///
/// let limiter = RateLimiter::per_key(Quota::per_minute(60).burst(5));
/// let admitted = limiter.try_check("alice").into_result()?;
/// assert_eq!((admitted.limit(), admitted.remaining()), (5, 4));
/// assert_eq!(admitted.reset_after(), Duration::from_secs(1));
/// # Ok::<(), tollgate::Refused>(())
/// ```
#[derive(Debug)]
pub struct Admitted {
    pub(super) status: Status,
    pub(super) id: ChargeId,
    pub(super) cost: Cost,
    /// The window or block in which each limit counted the charge, in the order of the limits.
    /// Empty if the store did not answer.
    pub(super) positions: SmallVec<[ChargePosition; 1]>,
    pub(super) store_error: Option<StoreError>,
}

/// A refused charge. The methods report the status of the limit with the longest wait.
///
/// ```
/// use tollgate::{Decision, Quota, RateLimiter};
///
/// let limiter = RateLimiter::per_key(Quota::per_hour(1).fixed_window());
/// assert!(limiter.try_check("alice").is_admitted());
/// let Decision::Refused(refused) = limiter.try_check("alice") else { panic!() };
/// assert!(refused.retry_after().unwrap().as_secs() >= 3_599);
/// assert_eq!(refused.remaining(), 0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    pub(super) status: Status,
    pub(super) store_error: Option<StoreError>,
}

impl Decision {
    /// Returns whether the key was charged.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert!(RateLimiter::per_key(Quota::per_minute(1)).try_check("alice").is_admitted());
    /// ```
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted(_))
    }

    /// Converts the decision to a `Result`, for use with `?`. A [`Refused`] error states when to
    /// retry.
    ///
    /// ```
    /// use tollgate::{Quota, RateLimiter, Refused};
    ///
    /// fn send(limiter: &RateLimiter) -> Result<(), Refused> {
    ///     limiter.try_check("mail").into_result()?;
    ///     Ok(())
    /// }
    ///
    /// let limiter = RateLimiter::per_key(Quota::per_hour(1).fixed_window());
    /// assert!(send(&limiter).is_ok());
    /// assert_eq!(send(&limiter).unwrap_err().to_string(), "rate limit exceeded; retry in 3600 s");
    /// ```
    ///
    /// # Errors
    /// [`Refused`] if a limit has too few units left.
    pub fn into_result(self) -> Result<Admitted, Refused> {
        match self {
            Self::Admitted(admitted) => Ok(admitted),
            Self::Refused(refused) => Err(refused),
        }
    }

    /// Returns the most units of the limit that a key can have at once: see [`Admitted::limit`].
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert_eq!(RateLimiter::per_key(Quota::per_minute(3)).try_check("alice").limit(), 3);
    /// ```
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.status().limit()
    }

    /// Returns the units of the limit that the key has left.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// assert_eq!(RateLimiter::per_key(Quota::per_minute(3)).try_check("alice").remaining(), 2);
    /// ```
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.status().remaining()
    }

    /// Returns the time until the limit resets: see [`Status::reset_after`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use tollgate::{Quota, RateLimiter};
    /// let decision = RateLimiter::per_key(Quota::per_minute(60)).try_check("alice");
    /// assert_eq!(decision.reset_after(), Duration::from_secs(1));
    /// ```
    #[must_use]
    pub const fn reset_after(&self) -> Duration {
        self.status().reset_after()
    }

    /// Returns the time after which the same check is admitted if no other charge is made. The time
    /// is zero if this check was admitted, and `None` if no wait helps.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_minute(3));
    /// assert!(limiter.try_check("alice").retry_after().unwrap().is_zero());
    /// assert_eq!(limiter.try_check_n("alice", 4).retry_after(), None);
    /// ```
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.status().retry_after()
    }

    const fn status(&self) -> &Status {
        match self {
            Self::Admitted(admitted) => &admitted.status,
            Self::Refused(refused) => &refused.status,
        }
    }
}

macro_rules! numbers {
    ($type:ident) => {
        impl $type {
            /// Returns the most units that a key can have at the same time: the quota, or the burst
            /// of a token bucket.
            ///
            /// ```
            /// # use tollgate::{Quota, RateLimiter};
            /// assert_eq!(RateLimiter::per_key(Quota::per_minute(3)).try_check("a").limit(), 3);
            /// ```
            #[must_use]
            pub const fn limit(&self) -> u64 {
                self.status.limit()
            }

            /// Returns the units of the limit that the key has left.
            ///
            /// ```
            /// # use tollgate::{Quota, RateLimiter};
            /// assert_eq!(RateLimiter::per_key(Quota::per_minute(3)).try_check("a").remaining(), 2);
            /// ```
            #[must_use]
            pub const fn remaining(&self) -> u64 {
                self.status.remaining()
            }

            /// Returns the time until the limit resets: see [`Status::reset_after`].
            ///
            /// ```
            /// # use tollgate::{Quota, RateLimiter};
            /// let decision = RateLimiter::per_key(Quota::per_hour(3)).try_check("alice");
            /// assert!(decision.reset_after().as_secs() <= 1_200);
            /// ```
            #[must_use]
            pub const fn reset_after(&self) -> Duration {
                self.status.reset_after()
            }

            /// Returns the store's error if the store did not answer and
            /// [`on_store_error`](crate::RateLimiter::on_store_error) decided. Returns `None` if
            /// the store answered, as the memory store always does.
            ///
            /// ```
            /// # use tollgate::{Quota, RateLimiter};
            /// let limiter = RateLimiter::per_key(Quota::per_minute(3));
            /// assert!(limiter.try_check("alice").into_result()?.store_error().is_none());
            /// # Ok::<(), tollgate::Refused>(())
            /// ```
            #[must_use]
            pub const fn store_error(&self) -> Option<StoreError> {
                self.store_error
            }
        }
    };
}

numbers!(Admitted);
numbers!(Refused);

impl Refused {
    /// Returns the time after which the same check is admitted if no other charge is made. A retry
    /// that is even a millisecond earlier fails. For a limit on concurrent permits, the time is an
    /// estimate: the mean time for which permits were held. Returns `None` if no wait helps,
    /// because the cost exceeds a limit's capacity.
    ///
    /// ```
    /// # use tollgate::{Quota, RateLimiter};
    /// let limiter = RateLimiter::per_key(Quota::per_minute(3));
    /// let refused = limiter.try_check_n("alice", 4).into_result().unwrap_err();
    /// assert_eq!(refused.retry_after(), None);
    /// ```
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.status.retry_after()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = self.store_error {
            return write!(f, "the rate limit cannot be checked: {error}");
        }
        match (self.status.admission, self.retry_after()) {
            (Admission::Never, _) | (_, None) => {
                write!(f, "the cost exceeds the limit of {}; no retry helps", self.limit())
            }
            (_, Some(wait)) => {
                let seconds = wait.as_millis().div_ceil(1_000).max(1);
                write!(f, "rate limit exceeded; retry in {seconds} s")
            }
        }
    }
}

impl Error for Refused {}
