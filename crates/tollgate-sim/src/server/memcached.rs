//! The model of a memcached server. The items are stored as keys in the model of Redis.
//!
//! A stored value consists of the item's token (the CAS value), its flags and its value. The token
//! is the number of the write that stored the item.

use super::resp::{Args, Malformed};
use super::{Entry, Server, Write};

/// The number of bytes before the value of an item: eight for the token, and four for the flags.
const HEAD: usize = 8 + 4;

/// The longest relative time to live in seconds. A larger number is a Unix time in seconds.
const MAX_RELATIVE: i64 = 30 * 86_400;

/// Returns the first command in `bytes` and its length, or `None` while the command is incomplete.
/// If the command stores a value, the value is the last word.
pub(crate) fn command(bytes: &[u8]) -> Result<Option<(Args<'_>, usize)>, Malformed> {
    let Some(length) = bytes.iter().position(|byte| *byte == b'\r') else { return Ok(None) };
    let mut args: Args<'_> = bytes[..length].split(|byte| *byte == b' ').collect();
    let mut end = length + 2;
    if args.first().is_some_and(|verb| *verb == b"ms") {
        let size: usize = args.get(2).and_then(|size| number(size)).ok_or(Malformed)?;
        let value = end..end + size;
        end = value.end + 2;
        if bytes.len() < end {
            return Ok(None);
        }
        args.push(&bytes[value]);
    }
    if bytes.len() < end {
        return Ok(None);
    }
    Ok(Some((args, end)))
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The flags of a command. Each flag is a letter, followed by a text.
struct Flags<'w>(&'w [&'w [u8]]);

impl<'w> Flags<'w> {
    fn text(&self, letter: u8) -> Option<&'w [u8]> {
        let flag = self.0.iter().find(|flag| flag.first() == Some(&letter))?;
        Some(&flag[1..])
    }

    fn number<N: std::str::FromStr>(&self, letter: u8) -> Option<N> {
        number(self.text(letter)?)
    }
}

impl Server {
    /// Executes one command. Returns the bytes of the reply.
    pub(crate) fn execute_memcached(&mut self, args: &[&[u8]]) -> Vec<u8> {
        self.catch_up();
        let [verb, rest @ ..] = args else { return b"ERROR\r\n".to_vec() };
        let (reply, write) = match (*verb, rest) {
            (b"stats", []) => return self.stats(),
            (b"mg", [key, flags @ ..]) => return self.get_item(key, &Flags(flags)),
            (b"ms", [key, _, flags @ .., value]) => self.store(key, &Flags(flags), value),
            (b"md", [key, flags @ ..]) => self.remove(key, &Flags(flags)),
            _ => return b"ERROR\r\n".to_vec(),
        };
        if let Some(entry) = write {
            self.apply(Write::Key { name: rest[0].to_vec(), entry });
        }
        reply
    }

    fn stats(&self) -> Vec<u8> {
        // The time that a real server reports is behind by 1 s on average: it is rounded down, and
        // the last tick of the server's clock was up to a second ago.
        let (pid, time) = (self.replication_id, self.now().as_millis().saturating_sub(500) / 1_000);
        let (flushes, evicted) = (self.flushes, self.evicted);
        format!(
            "STAT pid {pid}\r\nSTAT uptime 1000\r\nSTAT time {time}\r\nSTAT evictions {evicted}\r\n\
             STAT cmd_flush {flushes}\r\nEND\r\n"
        )
        .into_bytes()
    }

    /// Returns the token, the flags and the value of an item. Returns `None` if the item is missing
    /// or expired.
    fn item(&self, key: &[u8]) -> Option<(u64, u32, &[u8])> {
        let (head, value) = self.entry(key)?.value.split_at_checked(HEAD)?;
        let (token, flags) = head.split_first_chunk()?;
        Some((u64::from_be_bytes(*token), u32::from_be_bytes(flags.try_into().ok()?), value))
    }

    /// Executes `mg key v f c Oopaque`.
    fn get_item(&self, key: &[u8], flags: &Flags<'_>) -> Vec<u8> {
        let Some((token, client, value)) = self.item(key) else { return b"EN\r\n".to_vec() };
        let opaque = String::from_utf8_lossy(flags.text(b'O').unwrap_or_default());
        let length = value.len();
        let mut reply = format!("VA {length} f{client} c{token} O{opaque}\r\n").into_bytes();
        reply.extend_from_slice(value);
        reply.extend_from_slice(b"\r\n");
        reply
    }

    /// Executes `ms key size Tseconds Fflags [ME | MA | Ctoken] Oopaque`, with the value as the
    /// last word. Returns the reply, and the new entry of the key inside two `Some`. Returns `None`
    /// in place of the entry if the command stores nothing.
    fn store(
        &self,
        key: &[u8],
        flags: &Flags<'_>,
        value: &[u8],
    ) -> (Vec<u8>, Option<Option<Entry>>) {
        let known = self.item(key);
        let mode = flags.text(b'M');
        let code = match (known, mode, flags.number::<u64>(b'C')) {
            _ if self.is_full => return (b"SERVER_ERROR out of memory\r\n".to_vec(), None),
            (Some(_), Some(b"E"), _) => "NS",
            (None, Some(b"A"), _) => "NS",
            (None, _, Some(_)) => "NF",
            (Some((token, ..)), _, Some(expected)) if token != expected => "EX",
            _ => "HD",
        };
        let reply = result(code, flags);
        if code != "HD" {
            return (reply, None);
        }
        let kept = || Some((self.entry(key)?.expires_at, known?));
        let (expires_at, client, value) = match (mode, kept()) {
            (Some(b"A"), Some((expires_at, (_, client, before)))) => {
                (expires_at, client, [before, value].concat())
            }
            _ => (
                self.expiry(flags.number(b'T').unwrap_or(0)),
                flags.number(b'F').unwrap_or(0),
                value.to_vec(),
            ),
        };
        // The token of the item is the number of this write.
        let token = self.offset + 1;
        let value = [&token.to_be_bytes()[..], &u32::to_be_bytes(client), &value].concat();
        (reply, Some(Some(Entry { value, expires_at })))
    }

    /// Executes `md key Ctoken Oopaque`. Returns the reply, and `Some(None)` if the entry of the
    /// key must be removed, otherwise `None`.
    fn remove(&self, key: &[u8], flags: &Flags<'_>) -> (Vec<u8>, Option<Option<Entry>>) {
        let code = match (self.item(key), flags.number::<u64>(b'C')) {
            (None, _) => "NF",
            (Some((token, ..)), Some(expected)) if token != expected => "EX",
            _ => return (result("HD", flags), Some(None)),
        };
        (result(code, flags), None)
    }

    /// Returns the time at which an item expires, in ms. `seconds` is the relative time to live or
    /// a Unix time, as the client sent it. Returns `None` if `seconds` is 0: the item never
    /// expires. The clock of a memcached server advances once a second.
    fn expiry(&self, seconds: i64) -> Option<u64> {
        let now = i64::try_from(self.now().as_millis() / 1_000).unwrap_or(i64::MAX);
        let end = match seconds {
            0 => return None,
            1..=MAX_RELATIVE => now + seconds,
            _ => seconds,
        };
        Some(u64::try_from(end).unwrap_or(0) * 1_000)
    }
}

fn result(code: &str, flags: &Flags<'_>) -> Vec<u8> {
    let opaque = String::from_utf8_lossy(flags.text(b'O').unwrap_or_default());
    format!("{code} O{opaque}\r\n").into_bytes()
}
