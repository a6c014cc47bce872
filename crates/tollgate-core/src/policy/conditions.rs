//! Evaluation of conditions, including the conditions inside `not` and `any`.

use super::Policy;
use super::expression::{Attribute, Read};
use super::matching::{Matched, Mismatch, RequestMatch};
use super::subject::attribute_of;
use crate::attributes::RequestAttributes;

/// Which conditions of a rule are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All conditions of the rule are evaluated, for one request.
    Request,
    /// Only the conditions about the client are evaluated, to find the limits that the client's
    /// status contains. Conditions on the method, the path and the query are skipped, because the
    /// client can later send other requests.
    Caller,
}

/// Whether a request meets a condition. The variants are ordered: if all of several conditions must
/// be met, the result is the minimum of their results, and if any of them is enough, the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    No,
    /// It is not known: some requests of the client can meet the condition, and others can fail it.
    Maybe,
    Yes,
}

impl Truth {
    const fn negated(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
            Self::Yes => Self::No,
        }
    }
}

impl Policy {
    /// Returns the first condition of a rule that the request does not meet, as an error. The
    /// conditions on the method, the path and the query are not checked. With [`Scope::Request`],
    /// the caller of this function has already checked those three. With [`Scope::Caller`], the
    /// expression in `when` is not checked either.
    pub(super) fn check_conditions(
        &self,
        conditions: &RequestMatch,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
        scope: Scope,
    ) -> Result<(), Mismatch> {
        self.check_flat(conditions, attributes, matched)?;
        if scope == Scope::Request {
            self.check_when(conditions, attributes, matched)?;
        }
        let met = |one: &RequestMatch| self.evaluate(one, attributes, matched, scope);
        if !conditions.any.is_empty() && conditions.any.iter().all(|one| met(one) == Truth::No) {
            return Err(Mismatch::Any);
        }
        match conditions.not.iter().position(|one| met(one) == Truth::Yes) {
            Some(index) => Err(Mismatch::Not(index)),
            None => Ok(()),
        }
    }

    /// Returns the first condition about the client that the request does not meet, as an error.
    /// The sets of conditions in `any` and `not` are not checked.
    fn check_flat(
        &self,
        conditions: &RequestMatch,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
    ) -> Result<(), Mismatch> {
        conditions.check_caller(attributes, &self.forwarding)?;
        let has = |index: &usize| {
            self.dimensions[*index].source.is_present(&self.forwarding, attributes, matched)
        };
        if let Some(index) = conditions.has.iter().find(|index| !has(index)) {
            return Err(Mismatch::Has(*index));
        }
        match conditions.lacks.iter().find(|index| has(index)) {
            Some(index) => Err(Mismatch::Lacks(*index)),
            None => Ok(()),
        }
    }

    /// Returns an error if the conditions have an expression in `when` that the request does not
    /// meet.
    fn check_when(
        &self,
        conditions: &RequestMatch,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
    ) -> Result<(), Mismatch> {
        let forwarding = &self.forwarding;
        let read: Read<'_, '_> = &|attribute| match attribute {
            Attribute::Dimension(index) => {
                self.dimensions[*index].source.unnamed(forwarding, attributes, matched)
            }
            _ => attribute_of(attribute, forwarding, attributes, matched),
        };
        match &conditions.when {
            Some(when) if !when.condition.is_met(read) => Err(Mismatch::When),
            _ => Ok(()),
        }
    }

    /// Returns whether the request meets one set of conditions in `any` or `not`, including the
    /// sets inside it. [`MAX_CONDITION_DEPTH`](super::MAX_CONDITION_DEPTH) bounds the nesting.
    fn evaluate(
        &self,
        conditions: &RequestMatch,
        attributes: &RequestAttributes<'_>,
        matched: &Matched<'_>,
        scope: Scope,
    ) -> Truth {
        let operation = match scope {
            Scope::Caller if conditions.is_about_operation() => Truth::Maybe,
            Scope::Caller => Truth::Yes,
            Scope::Request => {
                let fits = conditions.pattern(matched.path).is_some()
                    && conditions.matches_method(attributes.method)
                    && conditions.check_query(attributes).is_ok()
                    && self.check_when(conditions, attributes, matched).is_ok();
                if fits { Truth::Yes } else { Truth::No }
            }
        };
        if operation == Truth::No || self.check_flat(conditions, attributes, matched).is_err() {
            return Truth::No;
        }
        let met = |one: &RequestMatch| self.evaluate(one, attributes, matched, scope);
        let any = conditions.any.iter().map(met).max().unwrap_or(Truth::Yes);
        let not = conditions.not.iter().map(|one| met(one).negated()).min().unwrap_or(Truth::Yes);
        operation.min(any).min(not)
    }
}
