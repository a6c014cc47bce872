//! Access control of listeners by tokens.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use subtle::{Choice, ConstantTimeEq};

use crate::listen::Listen;

/// The most tokens of one listener. The token of each request is compared with all of these tokens.
pub const MAX_TOKENS: usize = 64;

/// The length of the shortest token, in bytes. A shorter token could be guessed.
pub const SHORTEST_TOKEN: usize = 16;

/// The access control of a listener.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// No token is required. Use this variant only for loopback addresses and unix domain sockets.
    #[default]
    Open,
    /// A client must send one of these tokens.
    Tokens(Tokens),
}

/// The tokens of a listener. A listener can have several tokens, so an administrator can replace
/// them one after the other. No output contains a token.
///
/// Clones share their tokens: replacing the tokens of one clone replaces the tokens of all clones.
#[derive(Clone)]
pub struct Tokens(Arc<Shared>);

struct Shared {
    tokens: RwLock<Vec<Box<[u8]>>>,
    /// The number of times that the tokens were replaced.
    version: AtomicU64,
}

impl Tokens {
    /// Parses tokens from `text`, one a line. Empty lines and lines that start with `#` are
    /// ignored.
    ///
    /// # Errors
    /// [`AccessError`] if `text` contains no token, a token that is too short, or too many tokens.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        let shared = Shared { tokens: RwLock::new(read(text)?), version: AtomicU64::new(0) };
        Ok(Self(Arc::new(shared)))
    }

    /// Replaces the tokens by the tokens in `text`, from the next request on.
    ///
    /// # Errors
    /// The same errors as [`parse`](Self::parse). After an error, the current tokens stay valid.
    pub fn replace(&self, text: &str) -> Result<(), AccessError> {
        let tokens = read(text)?;
        *self.0.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        self.0.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Returns the number of times that the tokens were replaced. After a replacement, connections
    /// that were already admitted have to send a valid token again.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Returns whether `given` is one of the tokens. The time of the comparison does not reveal
    /// which token matches or which byte differs.
    #[must_use]
    pub fn contain(&self, given: &[u8]) -> bool {
        let is_same = |token: &[u8]| token.ct_eq(given);
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().fold(Choice::from(0), |any, token| any | is_same(token)).into()
    }
}

fn read(text: &str) -> Result<Vec<Box<[u8]>>, AccessError> {
    let lines = text.lines().map(str::trim);
    let tokens: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    if tokens.is_empty() {
        return Err(AccessError::NoToken);
    }
    if tokens.len() > MAX_TOKENS {
        return Err(AccessError::TooManyTokens(tokens.len()));
    }
    if let Some(short) = tokens.iter().find(|token| token.len() < SHORTEST_TOKEN) {
        return Err(AccessError::ShortToken(short.len()));
    }
    Ok(tokens.into_iter().map(|token| token.as_bytes().into()).collect())
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Access {
    /// Returns whether a client that sent `token` is admitted. `None` means that the client sent no
    /// token.
    #[must_use]
    pub fn admits(&self, token: Option<&[u8]>) -> bool {
        match self {
            Self::Open => true,
            Self::Tokens(tokens) => token.is_some_and(|token| tokens.contain(token)),
        }
    }

    /// Checks that the address `listen` is not reachable from other machines if no token is
    /// required.
    ///
    /// # Errors
    /// [`AccessError::Exposed`] if `listen` is reachable from other machines and no token is
    /// required.
    pub fn check(&self, listen: &Listen) -> Result<(), AccessError> {
        match self {
            Self::Open if !listen.is_local() => Err(AccessError::Exposed(listen.to_string())),
            _ => Ok(()),
        }
    }
}

/// The reason why a text is not a valid list of tokens, or why a listener must not be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessError {
    /// The text contains no token.
    NoToken,
    /// The text contains this number of tokens, which is above [`MAX_TOKENS`].
    TooManyTokens(usize),
    /// A token has this number of bytes, which is below [`SHORTEST_TOKEN`].
    ShortToken(usize),
    /// The listener at this address would be open to every client.
    Exposed(String),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("no token found: write one token per line"),
            Self::TooManyTokens(count) => {
                write!(f, "there are {count} tokens: at most {MAX_TOKENS} are allowed")
            }
            Self::ShortToken(length) => write!(
                f,
                "a token has {length} bytes: at least {SHORTEST_TOKEN} are required; create one \
                 with `openssl rand -hex 16`"
            ),
            Self::Exposed(listen) => write!(
                f,
                "{listen} is reachable from other machines and requires no token: configure \
                 tokens, listen on loopback, or pass --insecure"
            ),
        }
    }
}

impl std::error::Error for AccessError {}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "0123456789abcdef";
    const SECOND: &str = "fedcba9876543210";

    #[test]
    fn each_token_opens_and_nothing_else_does() {
        let tokens = Tokens::parse(&format!("# old\n{FIRST}\n\n  {SECOND}  \n")).unwrap();
        let access = Access::Tokens(tokens);
        assert!(access.admits(Some(FIRST.as_bytes())) && access.admits(Some(SECOND.as_bytes())));
        let wrong = ["", "0123456789abcdee", "0123456789abcdef0", "0123456789abcde", "# old"];
        assert!(wrong.iter().all(|token| !access.admits(Some(token.as_bytes()))));
        assert!(!access.admits(None));
        assert!(!format!("{access:?}").contains(FIRST));
    }

    #[test]
    fn tokens_are_replaced_in_every_clone_or_stay() {
        let tokens = Tokens::parse(FIRST).unwrap();
        let clone = tokens.clone();
        assert!(tokens.replace("short").is_err() && clone.contain(FIRST.as_bytes()));
        tokens.replace(SECOND).unwrap();
        assert!(clone.contain(SECOND.as_bytes()) && !clone.contain(FIRST.as_bytes()));
    }

    #[test]
    fn what_can_be_guessed_is_no_token() {
        assert_eq!(Tokens::parse("short\n").unwrap_err(), AccessError::ShortToken(5));
        assert_eq!(Tokens::parse("# none\n").unwrap_err(), AccessError::NoToken);
        let many = format!("{FIRST}\n").repeat(MAX_TOKENS + 1);
        assert_eq!(Tokens::parse(&many).unwrap_err(), AccessError::TooManyTokens(65));
    }

    #[test]
    fn a_network_needs_tokens() {
        let open = Access::Open;
        for local in ["127.0.0.1:80", "[::1]:80", "unix:/run/tollgate.sock"] {
            assert_eq!(open.check(&local.parse().unwrap()), Ok(()), "{local}");
        }
        for exposed in ["0.0.0.0:80", "10.0.0.1:80", "[::]:80", "systemd:http"] {
            assert!(open.check(&exposed.parse().unwrap()).is_err(), "{exposed}");
            let tokens = Access::Tokens(Tokens::parse(FIRST).unwrap());
            assert_eq!(tokens.check(&exposed.parse().unwrap()), Ok(()));
        }
    }
}
