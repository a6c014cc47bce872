//! The commands that are sent to a server.

use std::io::Write;

/// The longest key of memcached, in bytes.
pub(crate) const MAX_KEY: usize = 250;

/// The longest value that is stored or accepted, in bytes: memcached's default item size limit.
pub(crate) const MAX_VALUE: usize = 1 << 20;

/// The token that an item gets if the server's counter of versions wraps around at 2⁶⁴.
///
/// The server treats the token 0 as no token. With the token 0, a replacement never succeeds and a
/// removal always succeeds, so the item must get another token first.
const NO_TOKEN: u64 = 0;

/// A command to the server. Most commands concern one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    /// Reads the item with its flags and the token of its version.
    Get { key: &'a [u8] },
    /// Stores the item if there is no item under this key.
    Add { key: &'a [u8], item: Item },
    /// Stores the item if the current item under this key still has this token.
    Replace { key: &'a [u8], item: Item, token: u64 },
    /// Removes the item if the item still has this token.
    Remove { key: &'a [u8], token: u64 },
    /// Gives the item a new token and changes nothing else.
    Renumber { key: &'a [u8] },
    /// Reads the server's statistics.
    Stats,
}

/// An item to store under a key: its value, its flags and its expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// The value, of at most [`MAX_VALUE`] bytes.
    pub(crate) value: Vec<u8>,
    /// The flags that the server stores with the value, for the programs that read the value.
    pub(crate) flags: u32,
    /// The expiry, as [`expires`](crate::expiry::expires) computes it: seconds from now, or a Unix
    /// time by the server's clock.
    pub(crate) expires: i32,
}

impl Command<'_> {
    /// Returns the key of the item if the item's token in this command is not usable. In this case,
    /// the item must be renumbered before the command is sent.
    pub(crate) const fn unnumbered(&self) -> Option<&[u8]> {
        match self {
            Self::Replace { key, token: NO_TOKEN, .. } | Self::Remove { key, token: NO_TOKEN } => {
                Some(key)
            }
            _ => None,
        }
    }

    /// Appends the encoded command to `out`. The server repeats `opaque` in its reply.
    pub(crate) fn encode(&self, opaque: u32, out: &mut Vec<u8>) {
        match self {
            Self::Get { key } => {
                push(out, b"mg ", key);
                push_args(out, format_args!(" v f c O{opaque}\r\n"));
            }
            Self::Add { key, item } => {
                let Item { value, flags, expires } = item;
                push(out, b"ms ", key);
                let length = value.len();
                push_args(out, format_args!(" {length} T{expires} F{flags} ME O{opaque}\r\n"));
                push(out, value, b"\r\n");
            }
            Self::Replace { key, item, token } => {
                let Item { value, flags, expires } = item;
                push(out, b"ms ", key);
                let length = value.len();
                push_args(
                    out,
                    format_args!(" {length} T{expires} F{flags} C{token} O{opaque}\r\n"),
                );
                push(out, value, b"\r\n");
            }
            Self::Remove { key, token } => {
                push(out, b"md ", key);
                push_args(out, format_args!(" C{token} O{opaque}\r\n"));
            }
            // The command appends zero bytes, which the server counts as a change.
            Self::Renumber { key } => {
                push(out, b"ms ", key);
                push_args(out, format_args!(" 0 MA O{opaque}\r\n\r\n"));
            }
            Self::Stats => out.extend_from_slice(b"stats\r\n"),
        }
    }
}

fn push(out: &mut Vec<u8>, first: &[u8], second: &[u8]) {
    out.extend_from_slice(first);
    out.extend_from_slice(second);
}

fn push_args(out: &mut Vec<u8>, args: std::fmt::Arguments<'_>) {
    // Writing to a vector does not fail.
    let _ = out.write_fmt(args);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(command: &Command<'_>) -> String {
        let mut out = Vec::new();
        command.encode(7, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commands_are_lines_and_what_they_store() {
        let item = || Item { value: b"12".to_vec(), flags: 3, expires: 9 };
        assert_eq!(encoded(&Command::Get { key: b"k" }), "mg k v f c O7\r\n");
        assert_eq!(
            encoded(&Command::Add { key: b"k", item: item() }),
            "ms k 2 T9 F3 ME O7\r\n12\r\n"
        );
        assert_eq!(
            encoded(&Command::Replace { key: b"k", item: item(), token: 5 }),
            "ms k 2 T9 F3 C5 O7\r\n12\r\n"
        );
        assert_eq!(encoded(&Command::Remove { key: b"k", token: 5 }), "md k C5 O7\r\n");
        assert_eq!(encoded(&Command::Renumber { key: b"k" }), "ms k 0 MA O7\r\n\r\n");
        assert_eq!(encoded(&Command::Stats), "stats\r\n");
    }

    #[test]
    fn only_what_needs_a_token_and_has_none_has_to_be_numbered() {
        let item = || Item { value: b"12".to_vec(), flags: 3, expires: 9 };
        for token in [0, 1, u64::MAX] {
            let unnumbered = (token == 0).then_some(&b"k"[..]);
            let replace = Command::Replace { key: b"k", item: item(), token };
            assert_eq!(replace.unnumbered(), unnumbered);
            assert_eq!(Command::Remove { key: b"k", token }.unnumbered(), unnumbered);
        }
        assert_eq!(Command::Add { key: b"k", item: item() }.unnumbered(), None);
        assert_eq!(Command::Get { key: b"k" }.unnumbered(), None);
    }
}
