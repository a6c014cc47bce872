//! The values that specify the source of a secret.

use crate::decode::{Text, keys};

keys! {
    /// The source of a secret: exactly one of these.
    struct Secret as "a secret" {
        /// The name of the environment variable with the secret.
        env: Text,
        /// The path of the file with the secret.
        file: Text,
    }
}
