//! Lines of access logs.

macro_rules! parts {
    ($($name:ident = $path:literal),+ $(,)?) => {
        $(#[path = $path] #[allow(dead_code, unused_imports, unreachable_pub)] mod $name;)+
    };
}
parts! {
    combined = "../../crates/tollgate-cli/src/simulate/log/combined.rs",
    draft = "../../crates/tollgate-cli/src/simulate/log/draft.rs",
    entry = "../../crates/tollgate-cli/src/simulate/log/entry.rs",
    fields = "../../crates/tollgate-cli/src/simulate/log/fields.rs",
    format = "../../crates/tollgate-cli/src/simulate/log/format.rs",
    json = "../../crates/tollgate-cli/src/simulate/log/json/mod.rs",
    malformed = "../../crates/tollgate-cli/src/simulate/log/malformed.rs",
    quoted = "../../crates/tollgate-cli/src/simulate/log/quoted.rs",
    request_line = "../../crates/tollgate-cli/src/simulate/log/request_line.rs",
    time = "../../crates/tollgate-cli/src/simulate/log/time/mod.rs",
}

use std::sync::{Arc, LazyLock};

use fields::FieldMap;
use format::{Format, Parser};

/// The same value as in the module that these parts belong to.
const LINE_MAX: usize = u16::MAX as usize;

static FIELDS: LazyLock<Arc<FieldMap>> = LazyLock::new(Arc::default);

/// A parser that read other lines before gives the same result as a new one.
pub fn check(data: &[u8]) {
    let line = &data[..data.len().min(LINE_MAX)];
    let (before, line) = match memchr::memchr(b'\n', line) {
        Some(end) => (&line[..end], &line[end + 1..]),
        None => (&b""[..], line),
    };
    for format in [Format::Common, Format::Combined, Format::Json] {
        let mut used = Parser::new(Some(format), Arc::clone(&FIELDS));
        let _ = used.parse(before);
        let mut new = Parser::new(Some(format), Arc::clone(&FIELDS));
        let (one, other) = (used.parse(line), new.parse(line));
        assert_eq!(one, other);
        if let Ok(entry) = other {
            let _ = (entry.client(), entry.address(), entry.method(), entry.target(), entry.host());
        }
    }
}
