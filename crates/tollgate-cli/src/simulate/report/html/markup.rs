//! An HTML builder that never lets text of a log become markup.

use std::fmt::{self, Display, Write};

/// A piece of HTML. Markup comes only from literals of the program; all other text is escaped.
#[derive(Debug, Default)]
pub(super) struct Markup {
    html: String,
}

impl Markup {
    /// Adds markup without escaping.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.html.push_str(markup);
        self
    }

    /// Adds escaped text, or an attribute's value between quotes.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Self {
        // Writing to a string does not fail.
        let _ = write!(Escaped(&mut self.html), "{text}");
        self
    }

    /// Returns the HTML.
    pub(super) fn into_string(self) -> String {
        self.html
    }
}

struct Escaped<'h>(&'h mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // Bidirectional control characters would let a name rearrange the text around it.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.push('\u{fffd}'),
                control if control.is_control() => self.0.push('\u{fffd}'),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        let mut markup = Markup::default();
        markup
            .raw("<b title=\"")
            .text("\"><script>alert('1')</script>")
            .raw("\">")
            .text(5)
            .raw("</b>");
        assert_eq!(
            markup.into_string(),
            "<b title=\"&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\">5</b>"
        );
        let mut markup = Markup::default();
        markup.text("a\u{0}\u{1b}[2J\u{202e}b&amp;");
        assert_eq!(markup.into_string(), "a\u{fffd}\u{fffd}[2J\u{fffd}b&amp;amp;");
    }
}
