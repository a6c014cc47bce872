//! The value of a header field.

/// The value of a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// A number of whole units or seconds.
    Number(u64),
    /// A text of limit names and numbers, in visible ASCII characters and spaces.
    Text(String),
}
