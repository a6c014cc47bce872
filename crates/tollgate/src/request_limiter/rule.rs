//! Rules: which requests are charged on which limits.

use crate::quota::SubjectNames;

/// The requests that a rule matches, the limits that they are charged on, and their cost.
///
/// The first rule that matches a request decides. A request that no rule matches is charged one
/// unit on every limit.
///
/// ```
/// use tollgate::Rule;
///
/// let search = Rule::path("/search/**").limits(["burst"]).cost(5);
/// let uploads = Rule::path("/files/{name}").method("PUT").limits(["burst", "uploads"]);
/// let health = Rule::path("/health").exempt();
/// # let _ = (search, uploads, health);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a rule does nothing until a limiter is built with it"]
pub struct Rule {
    pub(super) paths: Vec<Box<str>>,
    pub(super) methods: Vec<Box<str>>,
    pub(super) hosts: Vec<Box<str>>,
    /// The limits that the rule charges; `None` for every limit of the limiter.
    pub(super) limits: Option<Vec<Box<str>>>,
    pub(super) cost: Option<u64>,
    pub(super) shadow: bool,
}

impl Rule {
    /// Creates a rule that matches every request.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let rest = Rule::any().limits(["hourly"]);
    /// # let _ = rest;
    /// ```
    pub fn any() -> Self {
        Self::default()
    }

    /// Creates a rule for the paths that match `pattern`. In a pattern, `*` is any segment,
    /// `{name}` a segment with a name, and `**` at the end all following segments. Add further
    /// patterns with [`or_path`](Self::or_path).
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let search = Rule::path("/search/**").or_path("/find");
    /// # let _ = search;
    /// ```
    pub fn path(pattern: &str) -> Self {
        Self::default().or_path(pattern)
    }

    /// Adds a pattern: the rule also matches the paths that match `pattern`.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let sign_in = Rule::path("/login").or_path("/oauth/token");
    /// # let _ = sign_in;
    /// ```
    pub fn or_path(mut self, pattern: &str) -> Self {
        self.paths.push(pattern.into());
        self
    }

    /// Restricts the rule to requests with this method. After several calls, the rule matches
    /// requests with any of the methods.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let writes = Rule::any().method("POST").method("PUT");
    /// # let _ = writes;
    /// ```
    pub fn method(mut self, method: &str) -> Self {
        self.methods.push(method.to_ascii_uppercase().into());
        self
    }

    /// Restricts the rule to requests to this host. `*.example.com` matches every name below
    /// `example.com`. After several calls, the rule matches requests to any of the hosts.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let api = Rule::any().host("api.example.com");
    /// # let _ = api;
    /// ```
    pub fn host(mut self, host: &str) -> Self {
        self.hosts.push(host.to_ascii_lowercase().into());
        self
    }

    /// Charges only the limits with these names, instead of all limits.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let search = Rule::path("/search/**").limits(["burst"]);
    /// # let _ = search;
    /// ```
    pub fn limits(mut self, limits: impl SubjectNames) -> Self {
        self.limits = Some(limits.into_names());
        self
    }

    /// Charges no limit: the requests of the rule are exempt.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let health = Rule::path("/health").exempt();
    /// # let _ = health;
    /// ```
    pub fn exempt(mut self) -> Self {
        self.limits = Some(Vec::new());
        self
    }

    /// Charges `units` for each request instead of one.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let export = Rule::path("/export").cost(100);
    /// # let _ = export;
    /// ```
    pub fn cost(mut self, units: u64) -> Self {
        self.cost = Some(units);
        self
    }

    /// Counts and reports the requests of the rule, but never refuses a request.
    ///
    /// ```
    /// # use tollgate::Rule;
    /// let trial = Rule::path("/reports/**").limits(["new-limit"]).shadow();
    /// # let _ = trial;
    /// ```
    pub fn shadow(mut self) -> Self {
        self.shadow = true;
        self
    }
}
