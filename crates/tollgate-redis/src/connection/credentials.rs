//! The user of a connection, and the source of its password.

use std::path::PathBuf;
use std::{env, fmt, fs};

use super::error::LinkError;

/// The longest password that is read, in bytes. A file with a longer password is reported as an
/// error.
const MAX_SECRET_BYTES: u64 = 4096;

/// A user of the server's access control list, and the source of its password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The user's name. `None` selects the server's default user.
    pub user: Option<String>,
    /// The source of the password. `None` if the user has no password.
    pub password: Option<SecretSource>,
}

/// The source of a password. The source is read again for each connection, so the next connection
/// uses a changed password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// The password is in the configuration.
    Inline(Secret),
    /// The password is in a file. A line break at the end of the file is removed.
    File(PathBuf),
    /// The password is in the environment variable with this name.
    Env(String),
}

/// A password. Its `Debug` output does not contain the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Creates a secret from `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl SecretSource {
    /// Reads the current password. A read from a file may block the thread, so do not call this
    /// function on an async thread.
    pub(crate) fn read(&self) -> Result<Secret, LinkError> {
        match self {
            Self::Inline(secret) => Ok(secret.clone()),
            Self::Env(name) => env::var(name).map(Secret).map_err(|problem| LinkError::Secret {
                source: format!("environment variable {name}"),
                problem: match problem {
                    env::VarError::NotPresent => "it is not set".into(),
                    env::VarError::NotUnicode(_) => "it is not UTF-8".into(),
                },
            }),
            Self::File(path) => read_file(path).map_err(|problem| LinkError::Secret {
                source: format!("file {}", path.display()),
                problem,
            }),
        }
    }
}

fn read_file(path: &PathBuf) -> Result<Secret, String> {
    let bytes = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if bytes > MAX_SECRET_BYTES {
        return Err(format!("it has {bytes} bytes; a password has at most {MAX_SECRET_BYTES}"));
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Secret::new(line.strip_suffix('\r').unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_gives_the_password_of_the_moment() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"first\r\n").unwrap();
        let source = SecretSource::File(file.path().to_owned());
        assert_eq!(source.read().unwrap().expose(), "first");

        fs::write(file.path(), "second \n").unwrap();
        assert_eq!(source.read().unwrap().expose(), "second ");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let missing = SecretSource::Env("TOLLGATE_NO_SUCH_VARIABLE".into()).read().unwrap_err();
        assert!(missing.to_string().contains("TOLLGATE_NO_SUCH_VARIABLE"), "{missing}");

        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), vec![b'x'; 5000]).unwrap();
        let long = SecretSource::File(file.path().to_owned()).read().unwrap_err().to_string();
        assert!(long.contains("5000 bytes") && !long.contains("xxx"), "{long}");
    }

    #[test]
    fn no_output_shows_a_password() {
        let credentials = Credentials {
            user: Some("tollgate".into()),
            password: Some(SecretSource::Inline(Secret::new("hunter2"))),
        };
        assert!(!format!("{credentials:?}").contains("hunter2"));
    }
}
