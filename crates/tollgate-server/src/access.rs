//! Who may enter a listener.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use subtle::{Choice, ConstantTimeEq};

use crate::listen::Listen;

/// The most tokens of one listener: each is compared for every request.
pub const MAX_TOKENS: usize = 64;

/// Bytes of the shortest token: fewer can be guessed.
pub const SHORTEST_TOKEN: usize = 16;

/// Who may enter a listener.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Everybody who reaches it: for loopback and unix domain sockets.
    #[default]
    Open,
    /// Who knows one of these.
    Tokens(Tokens),
}

/// What opens a listener, several at once so that one can be replaced. No output shows them.
///
/// Clones are one: what replaces the tokens of one replaces those of all.
#[derive(Clone)]
pub struct Tokens(Arc<Shared>);

struct Shared {
    tokens: RwLock<Vec<Box<[u8]>>>,
    /// How often they were replaced.
    version: AtomicU64,
}

impl Tokens {
    /// The tokens in `text`, one a line; empty lines and those that begin with `#` are none.
    ///
    /// # Errors
    /// [`AccessError`] if there is none, one is too short, or there are too many.
    pub fn parse(text: &str) -> Result<Self, AccessError> {
        let shared = Shared { tokens: RwLock::new(read(text)?), version: AtomicU64::new(0) };
        Ok(Self(Arc::new(shared)))
    }

    /// Puts the tokens in `text` in the place of these, from the next request on.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); the tokens in force then stay so.
    pub fn replace(&self, text: &str) -> Result<(), AccessError> {
        let tokens = read(text)?;
        *self.0.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        self.0.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// How often these were replaced: who was let in before may have to show a token again.
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Whether `given` is one of them. Takes as long whichever it is, and whichever byte is wrong.
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
    /// Whether who shows `token` may enter.
    #[must_use]
    pub fn admits(&self, token: Option<&[u8]>) -> bool {
        match self {
            Self::Open => true,
            Self::Tokens(tokens) => token.is_some_and(|token| tokens.contain(token)),
        }
    }

    /// Checks that not everybody on a network may enter.
    ///
    /// # Errors
    /// [`AccessError::Exposed`] if `listen` is reached from other machines and no token is asked.
    pub fn check(&self, listen: &Listen) -> Result<(), AccessError> {
        match self {
            Self::Open if !listen.is_local() => Err(AccessError::Exposed(listen.to_string())),
            _ => Ok(()),
        }
    }
}

/// Why a listener stays shut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessError {
    /// There is no token in what should hold some.
    NoToken,
    /// There are so many tokens.
    TooManyTokens(usize),
    /// A token has so few bytes.
    ShortToken(usize),
    /// Everybody could enter at this address.
    Exposed(String),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoToken => f.write_str("there is no token; write one a line"),
            Self::TooManyTokens(count) => {
                write!(f, "there are {count} tokens; at most {MAX_TOKENS} are compared")
            }
            Self::ShortToken(length) => write!(
                f,
                "a token has {length} bytes: {SHORTEST_TOKEN} are the least that cannot be \
                 guessed; make one with `openssl rand -hex 16`"
            ),
            Self::Exposed(listen) => write!(
                f,
                "{listen} is reached from other machines, and nobody is asked for a token: give \
                 tokens, listen on loopback, or say --insecure"
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
