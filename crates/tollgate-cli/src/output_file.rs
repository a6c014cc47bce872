//! Files that commands write.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes a file. An existing file is replaced in one step, so no program reads half of it. It keeps
/// its permissions, and symbolic links keep their targets. A new file, a device or a pipe is written
/// directly. So is a file that cannot be replaced, such as a file that is mounted into a container.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    write_with(path, text, replace)
}

/// Writes a file like [`write`], with the function `replace` that replaces an existing file.
fn write_with(
    path: &Path,
    text: &str,
    replace: impl Fn(&Path, &str, Permissions) -> io::Result<()>,
) -> io::Result<()> {
    let permissions = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => metadata.permissions(),
        _ => return fs::write(path, text),
    };
    match replace(path, text, permissions) {
        Err(error) if needs_folder(&error) => fs::write(path, text),
        replaced => replaced,
    }
}

fn replace(path: &Path, text: &str, permissions: Permissions) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Returns whether the file could not be replaced because of its folder: the file is a mount point,
/// or the process cannot create files in the folder.
fn needs_folder(error: &io::Error) -> bool {
    use ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem | ResourceBusy)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The bug: a file that was mounted into a container could not be written, because no file can
    /// take the place of a mount point.
    #[test]
    fn a_mounted_file_was_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.yaml");
        fs::write(&path, "an older policy, which is longer").unwrap();
        let kinds =
            [ErrorKind::ResourceBusy, ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied];
        for (kind, text) in kinds.into_iter().zip(["a policy", "another", "a third policy"]) {
            write_with(&path, text, |_, _, _| Err(kind.into())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let full = write_with(&path, "lost", |_, _, _| Err(ErrorKind::StorageFull.into()));
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "a third policy");
    }
}
