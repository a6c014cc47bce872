//! Metadata of a node, passed to the caller unchanged.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// A JSON value. Envoy receives it as dynamic metadata; no decision depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Metadata {
    /// The null value.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(Box<str>),
    /// An array.
    List(Vec<Self>),
    /// An object: names and their values, each name once.
    Map(Vec<(Box<str>, Self)>),
}
