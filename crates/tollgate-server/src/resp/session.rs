//! The state of a connection: authentication, protocol version and name.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::command::unknown_subcommand;
use super::frame::ClientAuth;
use super::reply::{Protocol, Replies, echoed};
use crate::access::Access;

/// The most invalid tokens that one connection may send. To guess more tokens, a client has to open
/// more connections.
pub const MAX_WRONG_TOKENS: u32 = 8;

/// The longest name of a connection, and the longest value of `CLIENT SETINFO`, in bytes.
const MAX_NAME: usize = 256;

const NOT_IN: &str = "NOAUTH Authentication required.";
const WRONG_TOKEN: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_TOKEN_NEEDED: &str = "ERR AUTH <password> called without any password configured for the \
                               default user. Are you sure your configuration is correct?";
const HELLO_NEEDS_TOKEN: &str = "NOAUTH HELLO must be called with the client already \
                                 authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
                                 option can be used to authenticate the client and select the \
                                 RESP protocol version at the same time";
const BAD_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// The id of the connection that was opened last.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// Whether the connection continues after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The connection reads the next command.
    Command,
    /// The connection closes after the reply.
    End,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Session<'d> {
    access: &'d Access,
    sender: ClientAuth,
    token_in_use: Option<AuthenticatedToken>,
    wrong_tokens: u32,
    /// The number of wrong tokens that [`take_wrong_tokens`](Self::take_wrong_tokens) has already
    /// returned.
    counted_wrong_tokens: u32,
    id: u64,
    name: Vec<u8>,
}

/// The token that authenticated the client, and the version of the listener's tokens at that time.
struct AuthenticatedToken {
    token: Box<[u8]>,
    version: u64,
}

impl fmt::Debug for AuthenticatedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthenticatedToken").field("version", &self.version).finish_non_exhaustive()
    }
}

impl<'d> Session<'d> {
    /// Creates a session with the access control `access`.
    pub(super) fn new(access: &'d Access) -> Self {
        let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        let sender = initial_auth(access);
        Self {
            access,
            sender,
            token_in_use: None,
            wrong_tokens: 0,
            counted_wrong_tokens: 0,
            id,
            name: Vec::new(),
        }
    }

    /// Returns the number of wrong tokens that the client sent since the last call.
    pub(super) fn take_wrong_tokens(&mut self) -> u32 {
        let before = std::mem::replace(&mut self.counted_wrong_tokens, self.wrong_tokens);
        self.wrong_tokens.saturating_sub(before)
    }

    /// Ends the authentication of the client if its token is no longer a token of the listener.
    pub(super) fn revalidate_token(&mut self) {
        let (Access::Tokens(tokens), Some(token_in_use)) = (self.access, &mut self.token_in_use)
        else {
            return;
        };
        let version = tokens.version();
        if token_in_use.version == version {
            return;
        }
        token_in_use.version = version;
        if !tokens.contain(&token_in_use.token) {
            self.token_in_use = None;
            self.sender = ClientAuth::Unauthenticated;
        }
    }

    /// Returns the authentication state of the client.
    pub(super) const fn sender(&self) -> ClientAuth {
        self.sender
    }

    /// Executes `AUTH [user] token`. Any user name is accepted.
    pub(super) fn auth(&mut self, args: &[&[u8]], replies: &mut Replies) -> Next {
        match args {
            [_] if matches!(self.access, Access::Open) => replies.error(NO_TOKEN_NEEDED),
            [token] | [_, token] if self.admit(token) => replies.status("OK"),
            [_] | [_, _] => {
                replies.error(WRONG_TOKEN);
                return self.after_a_wrong_token();
            }
            _ => replies.error("ERR syntax error"),
        }
        Next::Command
    }

    fn admit(&mut self, token: &[u8]) -> bool {
        // The version is read before the token is checked. If the tokens are replaced in between,
        // the token is checked again later.
        let version = match self.access {
            Access::Open => 0,
            Access::Tokens(tokens) => tokens.version(),
        };
        let is_admitted = self.access.admits(Some(token));
        if is_admitted {
            self.sender = ClientAuth::Authenticated;
            self.token_in_use = matches!(self.access, Access::Tokens(_))
                .then(|| AuthenticatedToken { token: token.into(), version });
        }
        is_admitted
    }

    fn after_a_wrong_token(&mut self) -> Next {
        self.wrong_tokens += 1;
        if self.wrong_tokens >= MAX_WRONG_TOKENS { Next::End } else { Next::Command }
    }

    /// Executes `HELLO [version [AUTH user token] [SETNAME name]]`
    pub(super) fn hello(&mut self, args: &[&[u8]], replies: &mut Replies) -> Next {
        let (protocol, mut options) = match args {
            [] => (replies.protocol(), args),
            [version, options @ ..] => match *version {
                b"2" => (Protocol::Resp2, options),
                b"3" => (Protocol::Resp3, options),
                version => {
                    replies.error(unsupported(version));
                    return Next::Command;
                }
            },
        };
        let (mut token, mut name) = (None, None);
        loop {
            options = match options {
                [] => break,
                [option, _, given, rest @ ..] if option.eq_ignore_ascii_case(b"auth") => {
                    token = Some(*given);
                    rest
                }
                [option, given, rest @ ..] if option.eq_ignore_ascii_case(b"setname") => {
                    name = Some(*given);
                    rest
                }
                [option, ..] => {
                    replies.error(format!("ERR Syntax error in HELLO option '{}'", echoed(option)));
                    return Next::Command;
                }
            };
        }
        if token.is_some_and(|token| !self.admit(token)) {
            replies.error(WRONG_TOKEN);
            return self.after_a_wrong_token();
        }
        if self.sender == ClientAuth::Unauthenticated {
            replies.error(HELLO_NEEDS_TOKEN);
            return Next::Command;
        }
        if name.is_some_and(|name| !self.rename(name)) {
            replies.error(BAD_NAME);
            return Next::Command;
        }
        replies.speak(protocol);
        self.introduce(replies);
        Next::Command
    }

    /// Writes the reply to `HELLO`.
    fn introduce(&self, replies: &mut Replies) {
        let texts = [("server", "tollgate"), ("version", env!("CARGO_PKG_VERSION"))];
        replies.map(7);
        for (field, text) in texts {
            replies.bulk(field);
            replies.bulk(text);
        }
        replies.bulk("proto");
        replies.integer(if replies.protocol() == Protocol::Resp3 { 3 } else { 2 });
        replies.bulk("id");
        replies.integer(self.id as i64);
        for (field, text) in [("mode", "standalone"), ("role", "master")] {
            replies.bulk(field);
            replies.bulk(text);
        }
        replies.bulk("modules");
        replies.array(0);
    }

    /// Executes `CLIENT …`
    pub(super) fn client(&mut self, args: &[&[u8]], replies: &mut Replies) {
        let is = |name: &str| args[0].eq_ignore_ascii_case(name.as_bytes());
        match &args[1..] {
            [] if is("id") => replies.integer(self.id as i64),
            [] if is("getname") && self.name.is_empty() => replies.nothing(),
            [] if is("getname") => replies.bulk(&self.name),
            [] if is("info") => replies.bulk(self.describe(replies.protocol())),
            [name] if is("setname") => match self.rename(name) {
                true => replies.status("OK"),
                false => replies.error(BAD_NAME),
            },
            [what, about] if is("setinfo") => set_info(what, about, replies),
            // These options are accepted without effect, because no keys are evicted and no keys
            // are touched.
            [_] if is("no-evict") || is("no-touch") => replies.status("OK"),
            _ if ["id", "getname", "info", "setname", "setinfo"].iter().any(|name| is(name)) => {
                let name = echoed(args[0]).to_ascii_lowercase();
                replies.error(format!("ERR wrong number of arguments for 'client|{name}' command"));
            }
            _ => replies.error(unknown_subcommand("CLIENT", args[0])),
        }
    }

    fn rename(&mut self, name: &[u8]) -> bool {
        let is_good = is_plain(name);
        if is_good {
            self.name = name.to_vec();
        }
        is_good
    }

    fn describe(&self, protocol: Protocol) -> String {
        let protocol = if protocol == Protocol::Resp3 { 3 } else { 2 };
        let name = String::from_utf8_lossy(&self.name);
        format!("id={} name={name} db=0 resp={protocol}\n", self.id)
    }

    /// Executes `RESET`, after which the connection has the state of a new connection.
    pub(super) fn reset(&mut self, replies: &mut Replies) {
        self.sender = initial_auth(self.access);
        self.token_in_use = None;
        self.name.clear();
        replies.speak(Protocol::Resp2);
        replies.status("RESET");
    }

    /// Replies that the client is not authenticated.
    pub(super) fn refuse(replies: &mut Replies) {
        replies.error(NOT_IN);
    }
}

const fn initial_auth(access: &Access) -> ClientAuth {
    match access {
        Access::Open => ClientAuth::Authenticated,
        Access::Tokens(_) => ClientAuth::Unauthenticated,
    }
}

fn set_info(what: &[u8], about: &[u8], replies: &mut Replies) {
    let is_known = [&b"lib-name"[..], b"lib-ver"].iter().any(|one| what.eq_ignore_ascii_case(one));
    match (is_known, is_plain(about)) {
        (false, _) => replies.error(format!("ERR Unrecognized option '{}'", echoed(what))),
        (true, false) => replies.error(format!(
            "ERR {} cannot contain spaces, newlines or special characters.",
            echoed(what)
        )),
        (true, true) => replies.status("OK"),
    }
}

/// Returns whether a name is short enough and consists of visible ASCII characters.
fn is_plain(name: &[u8]) -> bool {
    name.len() <= MAX_NAME && name.iter().all(u8::is_ascii_graphic)
}

fn unsupported(version: &[u8]) -> &'static str {
    let is_number = !version.is_empty() && version.iter().all(u8::is_ascii_digit);
    match is_number {
        true => "NOPROTO unsupported protocol version",
        false => "ERR Protocol version is not an integer or out of range",
    }
}

/// Executes `SELECT database`. The only database is number 0.
pub(super) fn select(word: &[u8], replies: &mut Replies) {
    match std::str::from_utf8(word).ok().and_then(|text| text.parse::<i64>().ok()) {
        Some(0) => replies.status("OK"),
        Some(_) => replies.error("ERR DB index is out of range"),
        None => replies.error("ERR value is not an integer or out of range"),
    }
}

/// Executes `PING [text]`
pub(super) fn ping(args: &[&[u8]], replies: &mut Replies) {
    match args {
        [] => replies.status("PONG"),
        [text] => replies.bulk(text),
        _ => replies.error("ERR wrong number of arguments for 'ping' command"),
    }
}

/// Executes `INFO …`. Replies with the fields that clients read, whichever section they ask for.
///
/// Clients derive the features that they can use from the Redis version, so the reply contains a
/// version of Redis in which these commands behave as they do in Tollgate.
pub(super) fn info(replies: &mut Replies) {
    replies.bulk(concat!(
        "# Server\r\n",
        "redis_version:7.4.0\r\n",
        "redis_mode:standalone\r\n",
        "tollgate_version:",
        env!("CARGO_PKG_VERSION"),
        "\r\n\r\n# Persistence\r\nloading:0\r\n",
        "\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
    ));
}
