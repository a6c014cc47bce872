//! Reads the numbers in the argument of a command.

use tollgate_core::{ChargeId, MAX_EXACT};

use crate::error::CommandError;

/// Reads the argument of a command part by part, from the start to the end.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(crate) fn bytes(&mut self, size: usize) -> Result<&'a [u8], CommandError> {
        let (bytes, rest) = self.rest.split_at_checked(size).ok_or(CommandError::Short)?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], CommandError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(CommandError::Short)?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, CommandError> {
        self.array::<1>().map(|[byte]| *byte)
    }

    /// Reads an unsigned number of seven bytes.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, CommandError> {
        let [a, b, c, d, e, f, g] = *self.array()?;
        Ok(u64::from_le_bytes([a, b, c, d, e, f, g, 0]))
    }

    /// Reads an unsigned number of seven bytes. Returns an error if the number is above 2^53 − 1,
    /// which is the largest integer that every store represents exactly. `what` is the name of the
    /// number in the error.
    #[inline]
    pub(crate) fn exact(&mut self, what: &'static str) -> Result<u64, CommandError> {
        let number = self.number()?;
        if number > MAX_EXACT { Err(CommandError::Invalid(what)) } else { Ok(number) }
    }

    /// Reads an unsigned number of four bytes. Returns an error if the number is above `most`.
    /// `what` is the name of the number in the error.
    #[inline]
    pub(crate) fn count(&mut self, most: usize, what: &'static str) -> Result<usize, CommandError> {
        let count = usize::try_from(u32::from_le_bytes(*self.array()?)).ok();
        count.filter(|count| *count <= most).ok_or(CommandError::Invalid(what))
    }

    /// Reads an index that counts from 1, and returns the index that counts from 0. Returns an
    /// error unless the read index is from 1 to `count`. `what` is the name of the index in the
    /// error.
    #[inline]
    pub(crate) fn index(
        &mut self,
        count: usize,
        what: &'static str,
    ) -> Result<usize, CommandError> {
        let index = self.count(count, what)?;
        index.checked_sub(1).ok_or(CommandError::Invalid(what))
    }

    #[inline]
    pub(crate) fn id(&mut self) -> Result<ChargeId, CommandError> {
        Ok(ChargeId(u128::from_be_bytes(*self.array()?)))
    }
}
