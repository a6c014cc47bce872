//! The path of the Tollgate server module.

use std::path::PathBuf;

/// Returns the path of the module. `./test` builds the module into the folder of the test programs.
pub fn module_file() -> String {
    let test = std::env::current_exe().expect("the path of this test");
    let folder = test.parent().map_or_else(PathBuf::new, PathBuf::from);
    let path = folder.join("libtollgate_module.so");
    assert!(path.exists(), "{}: build it by `cargo build -p tollgate-module`", path.display());
    path.to_str().expect("a path in UTF-8").to_owned()
}
