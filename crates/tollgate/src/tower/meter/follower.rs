//! Follows a JSON pointer through a document that arrives in pieces, without storing the document.
//!
//! The parser is written by hand. `serde_json` reads a whole document, and streaming readers such
//! as `struson` block on a reader, while a response passes in pieces. A follower stores one value
//! of at most `MAX_TEXT` bytes, however long the response is.

use std::mem;

use tollgate_core::json_pointer::MAX_POINTER_BYTES;

/// The longest name or value that a follower stores, in bytes. No pointer contains a longer name.
const MAX_TEXT: usize = MAX_POINTER_BYTES;

/// The state of a parser that follows a pointer in a JSON document that arrives in pieces.
///
/// The parser skips values outside of the pointer's path, at any depth, and checks these values
/// only as far as necessary to find their end. The state contains at most [`MAX_TEXT`] bytes of a
/// string, and one container for each step of the pointer. A step is one reference token of a JSON
/// pointer (RFC 6901).
#[derive(Debug, Default)]
pub(super) struct Follower {
    state: State,
    /// The open containers on the pointer's path, the outermost first.
    path: Vec<Container>,
    /// The number of open containers outside of the pointer's path.
    skipped: u64,
    /// Whether the next value is on the pointer's path or at its end.
    is_on_path: bool,
    text: Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Value,
    Name,
    Colon,
    /// The parser is after a value that is not in a skipped container.
    After,
    /// The parser is in a container outside of the pointer's path, outside of strings.
    Skipped,
    String(Role),
    Literal(Role),
    /// The document has ended. Only white space can follow.
    Ended,
    /// The document is not valid JSON.
    Invalid,
}

/// The role of a string or literal in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Name,
    Wanted,
    Skipped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object {
        /// Whether the object had a member on the pointer's path, or one whose name differs only
        /// in case.
        had_step: bool,
    },
    Array {
        index: u64,
    },
}

/// What a follower finds at its pointer, or on the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'t> {
    Text(&'t str),
    /// A number, as it is written in the document.
    Number(&'t str),
    /// An object on the pointer's path has a second member for the pointer. Services use the first
    /// one, the last one or parts of both, and some of them ignore the case of names.
    Repeated,
}

impl Follower {
    /// Parses `bytes`, the next bytes of the document. Calls `found` with each number or string at
    /// the pointer that consists of `steps`, and with each repeated member on the way to it.
    pub(super) fn push(
        &mut self,
        steps: &[Box<str>],
        bytes: &[u8],
        found: &mut impl FnMut(Found<'_>),
    ) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            match self.state {
                State::Invalid => return,
                State::String(Role::Skipped) if !self.text.is_escaped() => {
                    // Most bytes of most responses are in strings outside of the pointer's path,
                    // which are skipped quickly.
                    if byte != b'"' && byte != b'\\' {
                        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
                        rest = &rest[end.unwrap_or(rest.len())..];
                        continue;
                    }
                    self.string(Role::Skipped, byte, steps, found);
                }
                State::String(role) => self.string(role, byte, steps, found),
                State::Literal(role) => self.literal(role, byte, steps, found),
                _ => self.between(byte, steps),
            }
        }
    }

    /// Returns whether the follower has read a whole document.
    pub(super) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Resets the state, so the parser can read another document.
    pub(super) fn restart(&mut self) {
        self.path.clear();
        self.text.clear();
        (self.state, self.skipped) = (State::Start, 0);
    }

    /// Parses a byte outside of strings and literals.
    fn between(&mut self, byte: u8, steps: &[Box<str>]) {
        if byte.is_ascii_whitespace() {
            return;
        }
        self.state = match (self.state, byte) {
            (State::Start, _) => {
                self.is_on_path = true;
                self.value(byte, steps)
            }
            (State::Skipped, b'"') => self.begin(State::String(Role::Skipped)),
            (State::Skipped, b'{' | b'[') => {
                self.skipped += 1;
                State::Skipped
            }
            (State::Skipped, b'}' | b']') => {
                self.skipped -= 1;
                self.behind_value()
            }
            // Some services accept more than JSON, such as NaN, but also comments and other quotes.
            // These can contain brackets, so the end of the container is unknown.
            (State::Skipped, b'/' | b'\'' | b'#') => State::Invalid,
            (State::Skipped, _) => State::Skipped,
            (State::Name, b'"') => self.begin(State::String(Role::Name)),
            (State::Colon, b':') => State::Value,
            (State::After, b',') => self.next_member(steps),
            (State::After | State::Name | State::Value, b'}' | b']') => self.close(byte),
            (State::Value, _) => self.value(byte, steps),
            _ => State::Invalid,
        };
    }

    /// Parses the first byte of a value, and returns the state of the parser after this byte.
    fn value(&mut self, byte: u8, steps: &[Box<str>]) -> State {
        let is_wanted = self.is_on_path && self.path.len() == steps.len();
        let role = if is_wanted { Role::Wanted } else { Role::Skipped };
        match byte {
            b'"' => self.begin(State::String(role)),
            b'{' | b'[' if is_wanted || !self.is_on_path => {
                self.skipped = 1;
                State::Skipped
            }
            b'{' => self.open(Container::Object { had_step: false }, steps),
            b'[' => self.open(Container::Array { index: 0 }, steps),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.text.clear();
                self.text.keep(byte);
                State::Literal(role)
            }
            _ => State::Invalid,
        }
    }

    fn open(&mut self, container: Container, steps: &[Box<str>]) -> State {
        self.path.push(container);
        match container {
            Container::Object { .. } => State::Name,
            Container::Array { index } => {
                self.is_on_path = is_index(self.step(steps), index);
                State::Value
            }
        }
    }

    fn close(&mut self, byte: u8) -> State {
        match self.path.pop() {
            Some(Container::Object { .. }) if byte == b'}' && self.state != State::Value => {}
            Some(Container::Array { .. }) if byte == b']' && self.state != State::Name => {}
            _ => return State::Invalid,
        }
        self.behind_value()
    }

    fn next_member(&mut self, steps: &[Box<str>]) -> State {
        match self.path.last_mut() {
            Some(Container::Object { .. }) => State::Name,
            Some(Container::Array { index }) => {
                *index += 1;
                let index = *index;
                self.is_on_path = is_index(self.step(steps), index);
                State::Value
            }
            None => State::Invalid,
        }
    }

    /// Returns the step of the pointer for the innermost open container on the path.
    fn step<'s>(&self, steps: &'s [Box<str>]) -> &'s str {
        self.path.len().checked_sub(1).and_then(|at| steps.get(at)).map_or("", |step| step)
    }

    fn begin(&mut self, state: State) -> State {
        self.text.clear();
        state
    }

    const fn behind_value(&self) -> State {
        match (self.skipped, self.path.is_empty()) {
            (0, true) => State::Ended,
            (0, false) => State::After,
            _ => State::Skipped,
        }
    }

    fn string(
        &mut self,
        role: Role,
        byte: u8,
        steps: &[Box<str>],
        found: &mut impl FnMut(Found<'_>),
    ) {
        if self.text.is_in_hex() && !byte.is_ascii_hexdigit() {
            // Services differ on which of the next bytes belong to the escape.
            self.state = State::Invalid;
            return;
        }
        if !self.text.push(byte) {
            return;
        }
        self.state = match role {
            Role::Name => {
                if self.name(steps) {
                    found(Found::Repeated);
                }
                State::Colon
            }
            Role::Wanted | Role::Skipped => self.behind_value(),
        };
        if let (Role::Wanted, Some(text)) = (role, self.text.whole()) {
            found(Found::Text(text));
        }
    }

    /// Compares the name of a member with the pointer. Returns whether the object already had such
    /// a member.
    fn name(&mut self, steps: &[Box<str>]) -> bool {
        let (name, step) = (self.text.whole(), self.step(steps));
        self.is_on_path = name == Some(step);
        let is_similar = name.is_some_and(|name| is_equal_without_case(name, step));
        match self.path.last_mut() {
            Some(Container::Object { had_step }) if is_similar => mem::replace(had_step, true),
            _ => false,
        }
    }

    fn literal(
        &mut self,
        role: Role,
        byte: u8,
        steps: &[Box<str>],
        found: &mut impl FnMut(Found<'_>),
    ) {
        match byte {
            b',' | b'}' | b']' => {}
            _ if byte.is_ascii_whitespace() => {}
            b'+' | b'-' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.text.keep(byte);
                return;
            }
            // Some services accept a comment here, which can contain brackets.
            _ => {
                self.state = State::Invalid;
                return;
            }
        }
        let is_number =
            |text: &&str| text.starts_with(|one: char| one == '-' || one.is_ascii_digit());
        if let (Role::Wanted, Some(number)) = (role, self.text.whole().filter(is_number)) {
            found(Found::Number(number));
        }
        self.state = self.behind_value();
        self.between(byte, steps);
    }
}

/// Returns whether two names differ at most in case. The names are converted to upper case first,
/// because some letters have several lower-case forms.
fn is_equal_without_case(one: &str, other: &str) -> bool {
    let fold = |letter: char| letter.to_uppercase().flat_map(char::to_lowercase);
    one.chars().flat_map(fold).eq(other.chars().flat_map(fold))
}

/// Returns whether a step of a pointer is the index `index` of an array element.
fn is_index(step: &str, index: u64) -> bool {
    let is_plain = step == "0" || step.starts_with(|first: char| ('1'..='9').contains(&first));
    is_plain && step.parse() == Ok(index)
}

/// The part of a string that has arrived so far, with its escapes decoded.
#[derive(Debug, Default)]
struct Text {
    kept: Vec<u8>,
    is_too_long: bool,
    escape: Escape,
    /// The first half of a surrogate pair, until the second half arrives.
    surrogate: Option<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    Backslash,
    Hex {
        digits: u8,
        value: u16,
    },
}

impl Text {
    fn clear(&mut self) {
        self.kept.clear();
        (self.is_too_long, self.escape, self.surrogate) = (false, Escape::None, None);
    }

    fn is_escaped(&self) -> bool {
        self.escape != Escape::None
    }

    /// Returns whether the next byte must be a hexadecimal digit.
    const fn is_in_hex(&self) -> bool {
        matches!(self.escape, Escape::Hex { .. })
    }

    /// Returns the whole string. Returns `None` if the string is too long or is not UTF-8.
    fn whole(&self) -> Option<&str> {
        if self.is_too_long { None } else { std::str::from_utf8(&self.kept).ok() }
    }

    /// Parses the next byte of the string. Returns true if the byte is the closing quote.
    fn push(&mut self, byte: u8) -> bool {
        match self.escape {
            Escape::None if byte == b'"' => {
                self.end_surrogate();
                return true;
            }
            Escape::None if byte == b'\\' => self.escape = Escape::Backslash,
            Escape::None => {
                self.end_surrogate();
                self.keep(byte);
            }
            Escape::Backslash if byte == b'u' => {
                self.escape = Escape::Hex { digits: 0, value: 0 };
            }
            Escape::Backslash => {
                self.end_surrogate();
                self.keep(unescaped(byte));
                self.escape = Escape::None;
            }
            Escape::Hex { digits, value } => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let value = value << 4 | u16::try_from(digit).unwrap_or(0);
                self.escape = Escape::Hex { digits: digits + 1, value };
                if digits == 3 {
                    self.escape = Escape::None;
                    self.unit(value);
                }
            }
        }
        false
    }

    /// Appends a UTF-16 code unit, which is a character or half of a surrogate pair.
    fn unit(&mut self, unit: u16) {
        let units = match self.surrogate.take() {
            Some(high) => vec![high, unit],
            None if (0xd800..0xdc00).contains(&unit) => {
                self.surrogate = Some(unit);
                return;
            }
            None => vec![unit],
        };
        for letter in char::decode_utf16(units) {
            self.letter(letter.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }

    fn end_surrogate(&mut self) {
        if self.surrogate.take().is_some() {
            self.letter(char::REPLACEMENT_CHARACTER);
        }
    }

    fn letter(&mut self, letter: char) {
        for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
            self.keep(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.kept.len() < MAX_TEXT {
            self.kept.push(byte);
        } else {
            self.is_too_long = true;
        }
    }
}

/// Returns the character that `letter` represents after a backslash.
const fn unescaped(letter: u8) -> u8 {
    match letter {
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        other => other,
    }
}
