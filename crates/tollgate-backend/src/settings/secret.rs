//! Reads the deployment's hash key from the source that the policy file names.

use std::{env, fs};

use tollgate::HashKey;
use tollgate_policy::KeySource;

use super::error::OpenError;
use super::secret_error::{SHORTEST_SECRET, SecretError};

/// Derives the key that hashes subjects from the secret at `source`.
///
/// Reads a file or the environment. White space around the secret is removed.
///
/// # Errors
/// [`OpenError::Secret`] if there is no secret, or if the secret is shorter than
/// [`SHORTEST_SECRET`].
pub fn hash_key(source: &KeySource) -> Result<HashKey, OpenError> {
    read(source).map_err(|error| OpenError::Secret { key: "secret", error })
}

fn read(source: &KeySource) -> Result<HashKey, SecretError> {
    let secret = match source {
        KeySource::Random => return Ok(HashKey::random()),
        KeySource::Environment { name } => match env::var(name) {
            Ok(secret) => secret.into_bytes(),
            Err(error) => return Err(SecretError::Environment { name: name.clone(), error }),
        },
        KeySource::File { path } => match fs::read(path) {
            Ok(secret) => secret,
            Err(error) => return Err(SecretError::File { path: path.clone(), error }),
        },
    };
    let secret = secret.trim_ascii();
    if secret.len() < SHORTEST_SECRET {
        return Err(SecretError::Short { bytes: secret.len() });
    }
    Ok(HashKey::from_secret(secret))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tollgate::model::KeyedHash;

    use super::*;

    #[test]
    fn a_file_makes_the_same_key_with_and_without_a_line_break() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("secret");
        let hash = |text: &str| {
            fs::write(&path, text).unwrap();
            hash_key(&KeySource::File { path: path.clone() }).map(|key| key.hash(b"token"))
        };
        let hashed = hash("0123456789abcdef").unwrap();
        assert_eq!(hash("0123456789abcdef\n").unwrap(), hashed);
        assert_ne!(hash("0123456789abcdeg").unwrap(), hashed);
        let short = hash("0123456789abcde\n").unwrap_err().to_string();
        assert!(short.contains("15 bytes") && short.contains("openssl rand"), "{short}");
    }

    #[test]
    fn a_variable_that_is_not_set_is_reported_with_what_sets_it() {
        let source = KeySource::Environment { name: "TOLLGATE_NO_SUCH_VARIABLE".into() };
        let message = hash_key(&source).unwrap_err().to_string();
        let sets_it = "export TOLLGATE_NO_SUCH_VARIABLE=$(openssl rand -hex 16)";
        assert!(message.starts_with("secret: ") && message.contains(sets_it), "{message}");
    }
}
