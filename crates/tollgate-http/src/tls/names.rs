//! The names in a client's certificate.

use std::fmt::Write as _;

use x509_parser::{
    extensions::GeneralName,
    objects::{oid_registry, oid2abbrev},
    prelude::{FromDer, X509Certificate},
    x509::{AttributeTypeAndValue, X509Name},
};

/// The names in a certificate that was verified. If the certificate has several names of the same
/// kind, only one of them is kept, as each field states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// The whole subject in the order of the certificate, such as `C=DE,O=Example,CN=billing`.
    /// Special characters in a value are escaped as in RFC 4514, so two different subjects never
    /// have the same text.
    pub subject: Option<String>,
    /// The last common name in the subject, which is the most specific common name.
    pub common_name: Option<String>,
    /// The first DNS name of the subject alternative names.
    pub dns: Option<String>,
    /// The first URI of the subject alternative names, such as a SPIFFE ID.
    pub uri: Option<String>,
    /// The first email address of the subject alternative names.
    pub email: Option<String>,
}

impl CertificateNames {
    /// Reads the names of a certificate in DER form. Names that are not text are absent.
    #[must_use]
    pub fn of(der: &[u8]) -> Self {
        let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Self::default() };
        let subject = certificate.subject();
        let common_name = subject.iter_common_name().last();
        let mut names = Self {
            subject: Some(subject_text(subject)).filter(|text| !text.is_empty()),
            common_name: common_name.and_then(|name| name.as_str().ok()).and_then(text),
            ..Self::default()
        };
        let Ok(Some(alternatives)) = certificate.subject_alternative_name() else { return names };
        for name in &alternatives.value.general_names {
            let (field, name) = match name {
                GeneralName::DNSName(name) => (&mut names.dns, *name),
                GeneralName::URI(name) => (&mut names.uri, *name),
                GeneralName::RFC822Name(name) => (&mut names.email, *name),
                _ => continue,
            };
            if field.is_none() {
                *field = text(name);
            }
        }
        names
    }
}

fn text(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

fn subject_text(subject: &X509Name<'_>) -> String {
    let mut text = String::new();
    for rdn in subject.iter_rdn() {
        for (index, attribute) in rdn.iter().enumerate() {
            if !text.is_empty() {
                text.push(if index == 0 { ',' } else { '+' });
            }
            write_attribute(attribute, &mut text);
        }
    }
    text
}

fn write_attribute(attribute: &AttributeTypeAndValue<'_>, text: &mut String) {
    let kind = attribute.attr_type();
    match oid2abbrev(kind, oid_registry()) {
        Ok(name) => text.push_str(name),
        Err(_) => text.push_str(&kind.to_id_string()),
    }
    text.push('=');
    let Ok(value) = attribute.as_str() else {
        text.push('#');
        for byte in attribute.as_slice() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        return;
    };
    for (index, character) in value.chars().enumerate() {
        let is_special = matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';' | '=')
            || (index == 0 && matches!(character, '#' | ' '));
        if is_special {
            text.push('\\');
        }
        text.push(character);
    }
}
