//! The address of a server and the settings of connections to it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::credentials::{Credentials, Secret, SecretSource};
use super::resolver::NameResolver;
use super::tls::Tls;

const DEFAULT_PORT: u16 = 6379;

/// A server, with all settings that are needed to connect to the server.
///
/// An endpoint is parsed from a URL. The URL is
/// `redis://[user[:password]@]host[:port][/database][?protocol=3]`, the same with `rediss` for TLS,
/// or `unix:///path[?db=…&user=…&protocol=3]`. The text form of an endpoint is the URL without the
/// user and the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The server's address.
    pub address: Address,
    /// The number of the Redis database.
    pub database: u32,
    /// The version of the Redis wire protocol.
    pub protocol: Protocol,
    /// The user and the password for connections.
    pub credentials: Credentials,
    /// The resolver of the server's host name.
    pub names: NameResolver,
}

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address. [`NameResolver`] resolves the host name for each new connection.
    Tcp {
        /// The host name or IP address, without brackets.
        host: String,
        /// The TCP port.
        port: u16,
        /// The TLS settings, if TLS is used.
        tls: Option<Tls>,
    },
    /// A unix domain socket.
    Unix(PathBuf),
}

/// The version of the Redis wire protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RESP2, which every server supports.
    #[default]
    Resp2,
    /// RESP3, which servers support since 6.0.
    Resp3,
}

impl Endpoint {
    /// Returns an endpoint for the server at `host` and `port`. All other settings are copied from
    /// this endpoint.
    pub(crate) fn at(&self, host: String, port: u16) -> Self {
        let tls = match &self.address {
            Address::Tcp { tls, .. } => tls.clone(),
            Address::Unix(_) => None,
        };
        Self { address: Address::Tcp { host, port, tls }, ..self.clone() }
    }

    /// Returns the same endpoint with `credentials` instead of the credentials in its URL.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// Returns the same endpoint with `names` as the resolver of its host name.
    #[must_use]
    pub fn with_resolver(self, names: NameResolver) -> Self {
        Self { names, ..self }
    }

    /// Returns the same endpoint with the certificates in `tls`.
    ///
    /// # Errors
    /// [`EndpointError`] if the URL of the endpoint does not use TLS. The URL alone decides whether
    /// the connection is encrypted, so certificates cannot turn on encryption by accident.
    pub fn with_tls(mut self, tls: Tls) -> Result<Self, EndpointError> {
        match &mut self.address {
            Address::Tcp { tls: wanted @ Some(_), .. } => *wanted = Some(tls),
            _ => {
                let given = self.to_string();
                return Err(EndpointError { given, problem: Problem::NoTls });
            }
        }
        Ok(self)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        // The error may contain the text of the URL only after the user and the password are
        // removed.
        let url = Url::parse(text)
            .map_err(|_| EndpointError { given: scheme_of(text), problem: Problem::NotAUrl })?;
        parse(&url).map_err(|problem| EndpointError { given: without_secrets(&url), problem })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
            Address::Tcp { host, port, tls } => {
                let scheme = if tls.is_some() { "rediss" } else { "redis" };
                if host.contains(':') {
                    write!(f, "{scheme}://[{host}]:{port}")
                } else {
                    write!(f, "{scheme}://{host}:{port}")
                }
            }
        }
    }
}

fn parse(url: &Url) -> Result<Endpoint, Problem> {
    if url.fragment().is_some() {
        return Err(Problem::Fragment);
    }
    let mut endpoint = match url.scheme() {
        "redis" | "valkey" => tcp(url, None)?,
        "rediss" | "valkeys" => tcp(url, Some(Tls::default()))?,
        "unix" | "redis+unix" | "valkey+unix" => Endpoint {
            address: Address::Unix(url.to_file_path().map_err(|()| Problem::NoPath)?),
            database: 0,
            protocol: Protocol::default(),
            credentials: Credentials::default(),
            names: NameResolver::default(),
        },
        _ => return Err(Problem::Scheme),
    };
    let is_unix = matches!(endpoint.address, Address::Unix(_));
    for (name, value) in url.query_pairs() {
        match &*name {
            "protocol" => endpoint.protocol = protocol(&value)?,
            "db" if is_unix => endpoint.database = database(&value)?,
            "user" if is_unix => endpoint.credentials.user = Some(value.into_owned()),
            "pass" if is_unix => endpoint.credentials.password = Some(given(value)),
            _ => return Err(Problem::Parameter(name.into_owned())),
        }
    }
    Ok(endpoint)
}

fn tcp(url: &Url, tls: Option<Tls>) -> Result<Endpoint, Problem> {
    let host = match url.host().ok_or(Problem::NoHost)? {
        Host::Domain("") => return Err(Problem::NoHost),
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let path = url.path().trim_matches('/');
    let user = match url.username() {
        "" => None,
        encoded => Some(decoded(encoded)?),
    };
    let password = url.password().map(|encoded| decoded(encoded).map(given)).transpose()?;
    Ok(Endpoint {
        address: Address::Tcp { host, port: url.port().unwrap_or(DEFAULT_PORT), tls },
        database: if path.is_empty() { 0 } else { database(path)? },
        protocol: Protocol::default(),
        credentials: Credentials { user, password },
        names: NameResolver::default(),
    })
}

fn given(password: impl Into<String>) -> SecretSource {
    SecretSource::Inline(Secret::new(password))
}

fn decoded(text: &str) -> Result<String, Problem> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| Problem::NotUtf8)?;
    Ok(text.into_owned())
}

fn database(text: &str) -> Result<u32, Problem> {
    text.parse().map_err(|_| Problem::Database(text.to_owned()))
}

fn protocol(text: &str) -> Result<Protocol, Problem> {
    match text {
        "2" | "resp2" => Ok(Protocol::Resp2),
        "3" | "resp3" => Ok(Protocol::Resp3),
        _ => Err(Problem::Protocol(text.to_owned())),
    }
}

fn scheme_of(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, _)) if scheme.len() <= 16 => format!("{scheme}://…"),
        _ => "…".into(),
    }
}

fn without_secrets(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path())
}

/// The error for a text that is not the URL of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointError {
    given: String,
    problem: Problem,
}

/// The problem with the text of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    NotAUrl,
    Scheme,
    NoHost,
    NoPath,
    NoTls,
    NotUtf8,
    Fragment,
    Database(String),
    Protocol(String),
    Parameter(String),
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not the URL of a Redis server: ", self.given)?;
        match &self.problem {
            Problem::NotAUrl => f.write_str("write it as a URL, such as redis://10.0.0.1:6379"),
            Problem::Scheme => f.write_str("its scheme must be redis, rediss or unix"),
            Problem::NoHost => f.write_str("it has no host"),
            Problem::NoPath => f.write_str("it has no path, such as unix:///run/redis.sock"),
            Problem::NoTls => f.write_str(
                "certificates are configured, but the URL does not use TLS; use rediss://",
            ),
            Problem::NotUtf8 => f.write_str("its user or password is not UTF-8"),
            Problem::Fragment => f.write_str(
                "what follows # is not supported: a server's certificate is always verified; \
                 percent-encode a # in a password as %23",
            ),
            Problem::Database(text) => write!(f, "{text:?} is not the number of a database"),
            Problem::Protocol(text) => write!(f, "protocol is {text:?}; it should be 2 or 3"),
            Problem::Parameter(name) => write!(f, "it has an unknown parameter {name:?}"),
        }
    }
}

impl std::error::Error for EndpointError {}

#[cfg(test)]
mod tests;
