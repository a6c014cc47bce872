//! `tollgate fmt`: writes policy files in the standard form.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use crate::{output, output_file};

/// Write policy files in the standard form
///
/// Two spaces for each level, one space after `:` and `,`, double quotes, no trailing spaces. Keys,
/// values, comments and blank lines stay, in their order. A file is replaced at once, and only if it
/// changes.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Change nothing, and fail if a file does not have the standard form
    #[arg(long)]
    check: bool,
    /// The files to format: policies, or files that policies include; - reads stdin, writes stdout
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let mut failures = 0;
    let mut unformatted = 0;
    for path in &flags.files {
        match format(path, flags.check) {
            Ok(Outcome::Unchanged) => {}
            Ok(Outcome::Written) => output::note(&format!("{}: formatted\n", path.display())),
            Ok(Outcome::Differs) => {
                output::note(&format!("{}: not in the standard form\n", path.display()));
                unformatted += 1;
            }
            Err(failure) => {
                output::note(&format!("{failure}\n"));
                failures += 1;
            }
        }
    }
    let files = |count| if count == 1 { "file" } else { "files" };
    if failures > 0 {
        return Err(format!("{failures} {} cannot be formatted", files(failures)).into());
    }
    if unformatted > 0 {
        let message = format!("{unformatted} {} not in the standard form", files(unformatted));
        return Err(format!("{message}: run `tollgate fmt` without --check").into());
    }
    Ok(())
}

/// The result for one file.
enum Outcome {
    Unchanged,
    Written,
    /// The file does not have the standard form and was not changed, because of `--check`.
    Differs,
}

fn format(path: &Path, check: bool) -> Result<Outcome, Failure> {
    let is_stdin = path == Path::new("-");
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let bytes = if is_stdin {
        let mut bytes = Vec::new();
        // One byte more than allowed shows that the text is too large.
        let limit = tollgate_policy::MAX_FILE_BYTES as u64 + 1;
        io::stdin().lock().take(limit).read_to_end(&mut bytes).map(|_| bytes)
    } else {
        tollgate_policy::read(path)
    };
    let bytes = bytes.map_err(|error| format!("cannot read {name}: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8 text"))?;
    let formatted = tollgate_policy::format(&name, &text).map_err(|errors| errors.to_string())?;
    let is_same = formatted == text;
    match (is_stdin, check) {
        (_, true) if !is_same => return Ok(Outcome::Differs),
        (true, false) => output::print(&formatted)?,
        (false, false) if !is_same => {
            output_file::write(path, &formatted)
                .map_err(|error| format!("cannot write {name}: {error}"))?;
            return Ok(Outcome::Written);
        }
        _ => {}
    }
    Ok(Outcome::Unchanged)
}
