//! How much a request matters when not all of them can be served.

/// How much a request matters, in the order in which requests are shed: the first ones first.
///
/// After the four kinds of traffic that Stripe sheds by ("Scaling your API with rate limiters",
/// 2017).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Trials of integrators: nobody's business hangs on them.
    Test,
    /// What asks for data, and can ask again.
    Read,
    /// What changes data.
    #[default]
    Write,
    /// What the business lives by. It is shed last, and by the fleet only at its whole capacity.
    Critical,
}

impl Priority {
    /// All of them, in the order in which they are shed.
    pub const ALL: [Self; 4] = [Self::Test, Self::Read, Self::Write, Self::Critical];

    /// The priority of a request whose rule does not say: methods that only read are
    /// [`Read`](Self::Read), all others [`Write`](Self::Write).
    #[must_use]
    pub fn of_method(method: &str) -> Self {
        match method {
            "GET" | "HEAD" | "OPTIONS" | "TRACE" => Self::Read,
            _ => Self::Write,
        }
    }

    /// The word for it, in policy files, answers and metrics.
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
