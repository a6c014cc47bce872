//! Responses to refused requests: the statuses, header fields and bodies that a policy sets.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// The maximum length of a template in bytes.
pub const MAX_TEMPLATE: usize = 16 * 1024;
/// The largest number of variables in a template.
pub const MAX_VARIABLES: usize = 64;

/// The settings that replace parts of the default response to a refused request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalSettings {
    /// The status of the response. `None` means
    /// [`ResponseSettings::refuse_status`](crate::policy::ResponseSettings::refuse_status).
    pub status: Option<u16>,
    /// Additional header fields, with names in lower case.
    pub headers: Vec<(Box<str>, Box<str>)>,
    /// The URL of a page that explains the limits.
    pub documentation: Option<Box<str>>,
    /// The body for clients that accept JSON.
    pub json: Option<Template>,
    /// The body for clients that accept HTML.
    pub html: Option<Template>,
    /// The body for clients that accept plain text.
    pub text: Option<Template>,
}

/// A variable of a template. Its value comes from the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The name of the limit, as clients see it.
    Limit,
    /// The quota, or 0 for a limit that clients do not see.
    Quota,
    /// The units that remain, or 0 for a limit that clients do not see.
    Remaining,
    /// The time of the reset in seconds since 1970.
    Reset,
    /// The seconds until the same request can be admitted, or 0 if it never can.
    RetryAfter,
    /// The name of the first rule that matched.
    Rule,
    /// The status of the response.
    Status,
    /// The URL of the documentation of the limits.
    Documentation,
}

impl Variable {
    /// Every variable with its name in templates.
    pub const ALL: [(&'static str, Self); 8] = [
        ("limit", Self::Limit),
        ("quota", Self::Quota),
        ("remaining", Self::Remaining),
        ("reset", Self::Reset),
        ("retry_after", Self::RetryAfter),
        ("rule", Self::Rule),
        ("status", Self::Status),
        ("documentation", Self::Documentation),
    ];
}

/// A text with variables, such as `try again in {{retry_after}} s`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<TemplatePart>,
    length: usize,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text that is copied unchanged.
    Text(Box<str>),
    /// The value of a variable.
    Variable(Variable),
}

/// The reason why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError {
    /// The template is longer than [`MAX_TEMPLATE`].
    TooLong,
    /// The template has more than [`MAX_VARIABLES`] variables.
    TooManyVariables,
    /// A `{{` has no `}}`.
    Open,
    /// The template contains an unknown variable, with this name.
    Unknown(String),
}

impl Template {
    /// Reads a template. Variables are written as `{{name}}`.
    ///
    /// # Errors
    /// [`TemplateError`] if the text is too long or has too many variables, or if a variable is
    /// unknown or has no end.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_TEMPLATE {
            return Err(TemplateError::TooLong);
        }
        let (mut parts, mut rest, mut variables) = (Vec::new(), text, 0);
        while let Some((before, after)) = rest.split_once("{{") {
            let (name, after) = after.split_once("}}").ok_or(TemplateError::Open)?;
            let name = name.trim();
            let known = Variable::ALL.iter().find(|(known, _)| *known == name);
            let (_, variable) = known.ok_or_else(|| TemplateError::Unknown(name.into()))?;
            variables += 1;
            if !before.is_empty() {
                parts.push(TemplatePart::Text(before.into()));
            }
            parts.push(TemplatePart::Variable(*variable));
            rest = after;
        }
        if variables > MAX_VARIABLES {
            return Err(TemplateError::TooManyVariables);
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Text(rest.into()));
        }
        Ok(Self { parts, length: text.len() })
    }

    /// Returns the text of the template with the values of its variables. `write` appends the value
    /// of a variable.
    #[must_use]
    pub fn render(&self, mut write: impl FnMut(Variable, &mut String)) -> String {
        let mut text = String::with_capacity(self.length + 64);
        for part in &self.parts {
            match part {
                TemplatePart::Text(part) => text.push_str(part),
                TemplatePart::Variable(variable) => write(*variable, &mut text),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_its_text_with_values() {
        let template = Template::parse("{{limit}}: wait {{ retry_after }} s, {x}").unwrap();
        let write = |variable, text: &mut String| {
            text.push_str(if variable == Variable::Limit { "core" } else { "7" });
        };
        assert_eq!(template.render(write), "core: wait 7 s, {x}");
        assert_eq!(Template::parse("{{limit"), Err(TemplateError::Open));
        assert_eq!(Template::parse("{{a}}"), Err(TemplateError::Unknown("a".into())));
        let long = "x".repeat(MAX_TEMPLATE + 1);
        assert_eq!(Template::parse(&long), Err(TemplateError::TooLong));
        let many = "{{rule}}".repeat(MAX_VARIABLES + 1);
        assert_eq!(Template::parse(&many), Err(TemplateError::TooManyVariables));
    }
}
