//! Whole logs: many, compressed, damaged, out of order.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::super::{FILES_MAX, Input, LINE_MAX, Log, LogError, Options, ParseIssues};

fn line(second: u32, target: &str) -> String {
    let (minute, second) = (second / 60, second % 60);
    format!(
        "1.2.3.4 - - [17/May/2015:10:{minute:02}:{second:02} +0000] \"GET {target} HTTP/1.1\" 200 5\n"
    )
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> Input {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    Input::File(path)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn targets(inputs: &[Input], options: &Options) -> Result<(Vec<String>, ParseIssues), LogError> {
    let mut log = Log::open(inputs, options)?;
    let mut targets = Vec::new();
    while let Some(entry) = log.next_entry()? {
        targets.push(String::from_utf8(entry.target().unwrap().to_vec()).unwrap());
    }
    Ok((targets, log.issues().clone()))
}

#[test]
fn logs_are_merged_by_time_and_then_by_their_order() {
    let folder = TempDir::new().unwrap();
    let a = write(folder.path(), "a", line(1, "/a1") + &line(4, "/a4") + &line(2, "/a2"));
    let b = write(folder.path(), "b.gz", [gzip(&line(2, "/b2")), gzip(&line(3, "/b3"))].concat());
    let c = write(folder.path(), "c", r#"{"ts":1431856801,"uri":"/c"}"#);
    let (targets, issues) = targets(&[a, b, c], &Options::default()).unwrap();
    assert_eq!(targets, ["/a1", "/c", "/a2", "/b2", "/b3", "/a4"]);
    assert_eq!((issues.malformed, issues.late), (0, 0));
}

#[test]
fn malformed_lines_are_counted_with_examples() {
    let folder = TempDir::new().unwrap();
    let text = [
        line(1, "/1").replace('\n', "\r\n").into_bytes(),
        b"\xff\x1b[2J garbage\r\n\n".to_vec(),
        vec![b'x'; LINE_MAX + 1],
        b"\n".to_vec(),
        line(2, "/2").trim_end().as_bytes().to_vec(),
    ]
    .concat();
    let (targets, issues) =
        targets(&[write(folder.path(), "a.log", text)], &Options::default()).unwrap();
    assert_eq!(targets, ["/1", "/2"]);
    assert_eq!(issues.malformed, 2);
    let shown: Vec<_> =
        issues.examples.iter().map(|example| (example.line, example.why.to_string())).collect();
    assert_eq!(shown, [(2, "no time".to_owned()), (4, "longer than 65535 bytes".to_owned())]);
    assert!(issues.examples[0].log.ends_with("a.log"));
    assert_eq!(issues.examples[0].excerpt, r"\xff\x1b[2J garbage");
}

#[test]
fn late_entries_are_given_out_at_the_time_reached() {
    let folder = TempDir::new().unwrap();
    let log = write(
        folder.path(),
        "a",
        line(0, "/0") + &line(900, "/900") + &line(1800, "/1800") + &line(1, "/1"),
    );
    let (targets, issues) = targets(&[log], &Options::default()).unwrap();
    assert_eq!(targets, ["/0", "/900", "/1", "/1800"]);
    assert_eq!(issues.late, 1);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let missing = Input::File(PathBuf::from("/no/such/file.log"));
    let error = targets(&[missing], &Options::default()).unwrap_err().to_string();
    assert!(error.starts_with("cannot open /no/such/file.log: "), "{error}");

    let folder = TempDir::new().unwrap();
    let error =
        targets(&[Input::File(folder.path().into())], &Options::default()).unwrap_err().to_string();
    assert!(error.contains(&folder.path().display().to_string()), "{error}");

    let mut damaged = gzip(&line(1, "/1").repeat(5000));
    damaged.truncate(damaged.len() - 20);
    let error =
        targets(&[write(folder.path(), "cut.gz", damaged)], &Options::default()).unwrap_err();
    assert!(matches!(&error, LogError::Read { line: 1.., .. }), "{error}");
    assert!(error.to_string().contains("cut.gz"), "{error}");
}

#[test]
fn the_number_of_logs_is_bounded() {
    let inputs = vec![Input::File("/dev/null".into()); FILES_MAX];
    assert_eq!(targets(&inputs, &Options::default()).unwrap().0.len(), 0);
    let error = targets(&[inputs, vec![Input::Stdin]].concat(), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("65 logs"), "{error}");
    let twice = targets(&[Input::Stdin, Input::Stdin], &Options::default()).unwrap_err();
    assert!(matches!(twice, LogError::StdinTwice));
}
