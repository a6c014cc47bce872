//! Costs in JSON.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};
use tollgate::model::{Cost, MAX_EXACT};

/// Whole units, 0 … 2^53 − 1: the integers that every JSON parser represents exactly.
#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(inline)]
pub(in crate::http) struct Units(
    #[schemars(with = "u64", range(min = 0, max = 9_007_199_254_740_991_u64))] Cost,
);

impl Units {
    /// Returns these units, capped at 2^53 − 1.
    pub(in crate::http) const fn of(units: u64) -> Self {
        Self(Cost::up_to(units))
    }

    pub(in crate::http) const fn cost(self) -> Cost {
        self.0
    }
}

impl Default for Units {
    fn default() -> Self {
        Self(Cost::ONE)
    }
}

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(WholeUnits)
    }
}

impl Serialize for Units {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0.get())
    }
}

struct WholeUnits;

impl Visitor<'_> for WholeUnits {
    type Value = Units;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 0 to {MAX_EXACT}, in digits only")
    }

    fn visit_u64<E: Error>(self, units: u64) -> Result<Units, E> {
        let cost = Cost::new(units).map(Units);
        cost.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(units), &self))
    }
}
