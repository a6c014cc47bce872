//! Files that commands write.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes a file. An existing file is replaced in one step, so no program reads half of it. It keeps
/// its permissions, and symbolic links keep their targets. A new file, a device or a pipe is written
/// directly.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let permissions = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.permissions(),
        _ => return fs::write(path, text),
    };
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Checks that writing the file `output` replaces none of the files `inputs`. `flag` is the flag
/// that names `output`. The paths may be spelled differently, or lead through symbolic links.
///
/// # Errors
/// A message that names the file, and what to do.
pub(crate) fn check_is_no_input<'a>(
    output: &Path,
    flag: &str,
    inputs: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    // A file that does not exist yet is no input.
    let Ok(found) = fs::canonicalize(output) else { return Ok(()) };
    let is_output = |input: &&PathBuf| fs::canonicalize(input).is_ok_and(|input| input == found);
    match inputs.into_iter().find(is_output) {
        None => Ok(()),
        Some(input) => {
            let (output, input) = (output.display(), input.display());
            Err(format!("{output} is the input {input}: name another file with {flag}").into())
        }
    }
}
