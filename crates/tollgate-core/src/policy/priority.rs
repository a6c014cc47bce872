//! The priority of a request for load shedding.

/// The priority of a request for load shedding. The variants are in the order in which requests are
/// refused: the first variant is refused first.
///
/// The variants correspond to the four kinds of traffic that Stripe's load shedding distinguishes
/// ("Scaling your API with rate limiters", 2017).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Test traffic of developers, on which no business depends.
    Test,
    /// Requests that read data and can be retried.
    Read,
    /// Requests that change data.
    #[default]
    Write,
    /// Requests that the business depends on. They are refused last. Load shedding for the whole
    /// fleet refuses them only if its full capacity is in use.
    Critical,
}

impl Priority {
    /// All priorities, beginning with the one that is refused first.
    pub const ALL: [Self; 4] = [Self::Test, Self::Read, Self::Write, Self::Critical];

    /// Returns the priority of a request if its rule sets no priority: [`Read`](Self::Read) for
    /// methods that only read, [`Write`](Self::Write) for all others.
    #[must_use]
    pub fn of_method(method: &str) -> Self {
        match method {
            "GET" | "HEAD" | "OPTIONS" | "TRACE" => Self::Read,
            _ => Self::Write,
        }
    }

    /// Returns the name of the priority in policy files, responses and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Read => "read",
            Self::Write => "write",
            Self::Critical => "critical",
        }
    }
}
