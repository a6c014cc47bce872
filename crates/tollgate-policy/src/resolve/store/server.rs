//! Parses the URLs of servers.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::decode::{Spanned, Text, quoted};
use crate::report::Report;

const DEFAULT_PORT: u16 = 6379;

/// What the URL of a server contains: its address, and the way in which it is reached.
pub(super) struct ResolvedServer {
    /// The address of the server in a normal form. All URLs with the same host and port, or with
    /// the same path of a socket, have the same normal form.
    pub(super) address: String,
    pub(super) way: ServerTransport,
}

/// The way in which a server is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerTransport {
    Tls,
    /// The server is reached over the network without encryption. Anyone on the network path can
    /// read the data.
    Plain,
    /// The server is reached over a Unix domain socket of this machine.
    Unix,
}

/// Parses the URL of a server. Returns `None` after reporting a mistake.
///
/// No message repeats the URL, because the URL can contain a password.
pub(super) fn server(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<ResolvedServer> {
    let read = Url::parse(&given.value.0).map_err(|_| SHAPE.to_owned()).and_then(|url| {
        let server = read(&url)?;
        Ok((server, holds_password(&url)))
    });
    match read {
        Ok((server, holds_password)) => {
            if holds_password {
                let hint = "anyone who can read this file can use it: set password: { env: TOLLGATE_REDIS_PASSWORD } instead";
                report.warning(given.at, "the URL contains a password", hint);
            }
            Some(server)
        }
        Err(hint) => {
            report.error(given.at, "invalid URL of a Redis server", hint);
            None
        }
    }
}

/// Parses the URL of a sentinel. Returns `None` after reporting a mistake. As in [`server`], no
/// message repeats the URL.
pub(super) fn sentinel(given: &Spanned<Text>, report: &mut Report<'_>) -> Option<ResolvedServer> {
    let server = server(given, report)?;
    // The URL is valid, because it was already parsed as the URL of a server.
    let url = Url::parse(&given.value.0).ok()?;
    let hint = match server.way {
        ServerTransport::Unix => "sentinels are reached over the network: redis://HOST:26379",
        ServerTransport::Tls | ServerTransport::Plain if url.port().is_none() => {
            "it has no port; use redis://HOST:26379"
        }
        ServerTransport::Tls | ServerTransport::Plain
            if !url.path().trim_matches('/').is_empty() =>
        {
            "a sentinel has no databases"
        }
        ServerTransport::Tls | ServerTransport::Plain => return Some(server),
    };
    report.error(given.at, "invalid URL of a sentinel", hint);
    None
}

/// Returns the address of the server and the number of the database that a URL names. Returns
/// `None` if the URL is not valid.
pub(super) fn keyspace(url: &str) -> Option<(String, u32)> {
    let url = Url::parse(url).ok()?;
    let server = read(&url).ok()?;
    let number = match server.way {
        ServerTransport::Tls | ServerTransport::Plain => url.path().trim_matches('/').parse().ok(),
        ServerTransport::Unix => url
            .query_pairs()
            .find_map(|(name, value)| (name == "db").then(|| value.parse().ok())?),
    };
    Some((server.address, number.unwrap_or_default()))
}

const SHAPE: &str = "expected redis://HOST:PORT, rediss://HOST:PORT with TLS, or unix:///PATH";

/// Parses the URL of a server.
///
/// # Errors
/// A hint for the error message.
fn read(url: &Url) -> Result<ResolvedServer, String> {
    if url.fragment().is_some() {
        return Err("write a # in a password as %23".to_owned());
    }
    let way = match url.scheme() {
        "redis" | "valkey" => ServerTransport::Plain,
        "rediss" | "valkeys" => ServerTransport::Tls,
        "unix" | "redis+unix" | "valkey+unix" => return socket(url),
        _ => return Err(SHAPE.to_owned()),
    };
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or("it has no host, such as redis://10.0.0.1:6379")?;
    let user_and_password = [url.username(), url.password().unwrap_or_default()];
    if user_and_password.iter().any(|part| percent_decode_str(part).decode_utf8().is_err()) {
        return Err("its user and password must be UTF-8".to_owned());
    }
    match url.path().trim_matches('/') {
        "" => {}
        number => database(number)?,
    }
    for (name, value) in url.query_pairs() {
        parameter(&name, &value, &[])?;
    }
    let port = url.port().unwrap_or(DEFAULT_PORT);
    Ok(ResolvedServer { address: format!("{}:{port}", host.to_ascii_lowercase()), way })
}

/// Parses the URL of a Unix domain socket.
///
/// # Errors
/// A hint for the error message.
fn socket(url: &Url) -> Result<ResolvedServer, String> {
    let path = url.to_file_path().ok().filter(|path| path.file_name().is_some());
    let path = path.ok_or("it has no path, such as unix:///run/redis.sock")?;
    for (name, value) in url.query_pairs() {
        parameter(&name, &value, &["db", "user", "pass"])?;
    }
    Ok(ResolvedServer { address: format!("unix://{}", path.display()), way: ServerTransport::Unix })
}

fn parameter(name: &str, value: &str, more: &[&str]) -> Result<(), String> {
    match name {
        "protocol" if matches!(value, "2" | "3" | "resp2" | "resp3") => Ok(()),
        "protocol" => Err("`protocol` must be 2 or 3".to_owned()),
        "db" if more.contains(&name) => database(value),
        name if more.contains(&name) => Ok(()),
        name => {
            let known = ["protocol"].iter().chain(more).copied().collect::<Vec<_>>().join(", ");
            Err(format!("unknown parameter {}; expected one of {known}", quoted(name)))
        }
    }
}

fn database(text: &str) -> Result<(), String> {
    match text.parse::<u32>() {
        Ok(_) => Ok(()),
        Err(_) => Err("the path after its host must be the number of a database".to_owned()),
    }
}

fn holds_password(url: &Url) -> bool {
    url.password().is_some() || url.query_pairs().any(|(name, _)| name == "pass")
}
