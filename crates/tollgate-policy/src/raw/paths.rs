//! The key `paths`: options for comparing paths.

use super::choices::{AmbiguousPathsName, PathCaseName, PathParametersName};
use crate::decode::keys;

keys! {
    /// How the paths of requests are compared with the patterns of rules. Choose the same comparison as that of the service.
    struct Paths as "options of paths" {
        /// Whether the case of letters counts. By default `exact`.
        case: PathCaseName,
        /// Whether parameters such as `;v=1` in `/login;v=1` count. By default `keep`.
        parameters: PathParametersName,
        /// The answer to requests with a path that services interpret in different ways: with a segment `.` or `..`, an encoded slash (`%2f`), a backslash or an encoded one (`%5c`), an encoded NUL (`%00`), or a `%` without two hexadecimal digits. By default `refuse`.
        ambiguous: AmbiguousPathsName,
    }
}
