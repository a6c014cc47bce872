//! Reads rows of tenants from CSV or JSON lines, as they arrive.

use axum::http::{HeaderMap, header};
use csv_core::{ReadRecordResult, Reader};
use memchr::memchr;
use tollgate::tenants::{MAX_TENANTS, Tenant, TenantBatch, TenantQuota};

use super::rules::RowRules;
use crate::http::json;
use crate::http::wire::TenantLine;

/// The most bytes of one line.
const MAX_LINE: usize = 16 * 1024;

/// The columns of an import in CSV.
pub(super) const COLUMNS: [&str; 3] = ["tenant", "plan", "quotas"];

/// The format of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFormat {
    /// RFC 4180 with the header `tenant,plan,quotas`.
    Csv,
    /// One JSON object per line.
    JsonLines,
}

impl RowFormat {
    /// Returns the format that the media type in `headers` names, or `None` for another media type.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(header::CONTENT_TYPE)?.as_bytes();
        let media_type = value.split(|byte| *byte == b';').next()?.trim_ascii();
        let is = |known: &[u8]| media_type.eq_ignore_ascii_case(known);
        match () {
            () if is(b"text/csv") => Some(Self::Csv),
            () if is(b"application/x-ndjson") || is(b"application/jsonl") => Some(Self::JsonLines),
            () => None,
        }
    }
}

/// A reader of the rows in a body, with the number of the current line.
pub(super) struct RowReader {
    format: RowFormat,
    /// The parser of CSV lines. The reader keeps one parser, because building the parser's tables
    /// takes longer than parsing a line.
    csv: Box<Reader>,
    rules: RowRules,
    batch: TenantBatch,
    /// The start of a line whose end has not arrived.
    partial: Vec<u8>,
    line: usize,
    is_after_header: bool,
}

impl RowReader {
    pub(super) fn new(format: RowFormat, rules: RowRules, batch: TenantBatch) -> Self {
        let is_after_header = format == RowFormat::JsonLines;
        let (csv, partial) = (Box::new(Reader::new()), Vec::new());
        Self { format, csv, rules, batch, partial, line: 0, is_after_header }
    }

    /// Reads the next bytes of the body.
    ///
    /// # Errors
    /// The first mistake, with the number of its line.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.partial.is_empty() {
                self.line(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                self.line(&whole)?;
                whole.clear();
                self.partial = whole;
            }
        }
        if self.partial.len() + bytes.len() > MAX_LINE {
            return Err(self.mistake(1, &format!("the line exceeds {MAX_LINE} bytes")));
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    /// Reads a last line without an end, and returns all rows.
    ///
    /// # Errors
    /// The first mistake, with the number of its line.
    pub(super) fn finish(mut self) -> Result<TenantBatch, String> {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            self.line(&line)?;
        }
        if !self.is_after_header {
            return Err(format!("the first line is not {:?}", COLUMNS.join(",")));
        }
        Ok(self.batch)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), String> {
        self.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line =
            if self.line == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let row = match self.format {
            RowFormat::JsonLines => json_row(line),
            RowFormat::Csv if !self.is_after_header => {
                self.is_after_header = true;
                let is_header = line.eq_ignore_ascii_case(COLUMNS.join(",").as_bytes());
                let expected = COLUMNS.join(",");
                return is_header
                    .then_some(())
                    .ok_or_else(|| self.mistake(0, &format!("the header is not {expected:?}")));
            }
            RowFormat::Csv => csv_row(&mut self.csv, line),
        };
        let checked = row.and_then(|row| {
            self.rules.check(&row)?;
            if self.batch.len() == MAX_TENANTS {
                return Err(format!("more than {MAX_TENANTS} rows"));
            }
            self.batch.set(&row).map_err(|error| error.to_string())
        });
        checked.map_err(|mistake| self.mistake(0, &mistake))
    }

    fn mistake(&self, after: usize, mistake: &str) -> String {
        format!("line {}: {mistake}; nothing was imported", self.line + after)
    }
}

fn json_row(line: &[u8]) -> Result<Tenant, String> {
    let row: TenantLine<'_> = json::read(line).map_err(|fault| match fault.pointer() {
        "" => fault.to_string(),
        pointer => format!("{pointer}: {fault}"),
    })?;
    Ok(row.row())
}

/// Reads `acme,pro,calls=1000/50 uploads=20`.
fn csv_row(reader: &mut Reader, line: &[u8]) -> Result<Tenant, String> {
    let (mut text, mut ends) = (vec![0; line.len() + 1], [0; COLUMNS.len() + 1]);
    let line = [line, b"\n"].concat();
    reader.reset();
    let (read, _, written, fields) = reader.read_record(&line, &mut text, &mut ends);
    match read {
        ReadRecordResult::Record if fields == COLUMNS.len() => {}
        ReadRecordResult::Record | ReadRecordResult::OutputEndsFull => {
            return Err(format!("the line has not the columns {}", COLUMNS.join(",")));
        }
        _ => return Err("a quoted field has no end".to_owned()),
    }
    let text = std::str::from_utf8(text.get(..written).unwrap_or_default());
    let text = text.map_err(|_| "the line is not UTF-8".to_owned())?;
    let field = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let (name, plan) = (field(0, ends[0]), field(ends[0], ends[1]));
    let quotas = field(ends[1], ends[2]).split_ascii_whitespace().map(csv_quota);
    let quotas = quotas.collect::<Result<_, _>>()?;
    Ok(Tenant { name: name.into(), plan: (!plan.is_empty()).then(|| plan.into()), quotas })
}

/// Reads `calls=1000` or `calls=1000/50`.
fn csv_quota(text: &str) -> Result<TenantQuota, String> {
    let wrong = || format!("{text:?} is no quota: write LIMIT=QUOTA or LIMIT=QUOTA/BURST");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (limit, numbers) = text.split_once('=').ok_or_else(wrong)?;
    let (quota, burst) = match numbers.split_once('/') {
        Some((quota, burst)) => (quota, Some(number(burst)?)),
        None => (numbers, None),
    };
    Ok(TenantQuota { limit: limit.into(), quota: number(quota)?, burst })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> RowRules {
        let text = "
subjects: { org: { header: x-org, trusted: true } }
tenants: { by: org }
limits:
  calls: { algorithm: token_bucket, quota: { by: plan, values: { free: 60, pro: 6_000 }, default: 30 }, burst: 9, window: 1m, per: org }
rules: [{ limits: calls }]
";
        RowRules::of(&tollgate_policy::parse("test.yaml", text).unwrap().policy)
    }

    /// Reads `text` in pieces of several sizes, and returns the rows if all results are equal.
    fn read(format: RowFormat, text: &str) -> Result<Vec<(String, String)>, String> {
        let mut results = [1, 2, 7, 1_000].map(|size| {
            let mut reader = RowReader::new(format, rules(), TenantBatch::default());
            text.as_bytes().chunks(size).try_for_each(|piece| reader.read(piece))?;
            let tenants = std::sync::Arc::new(tollgate::tenants::Tenants::default());
            let batch = reader.finish()?;
            for (index, partition) in tenants.next(&batch, 0).unwrap() {
                tenants.install(index, partition);
            }
            let (mut rows, _) = tenants.list("", None, (100, 100_000));
            rows.sort_by(|one, other| one.name.cmp(&other.name));
            let quotas = |row: &Tenant| {
                let one = |one: &TenantQuota| format!("{} {:?}", one.quota, one.burst);
                let own: Vec<_> = row.quotas.iter().map(one).collect();
                format!("{} {}", row.plan.as_deref().unwrap_or("-"), own.join(" "))
            };
            Ok(rows.iter().map(|row| (row.name.to_string(), quotas(row))).collect())
        });
        let last = results.last_mut().map(|last| std::mem::replace(last, Ok(Vec::new()))).unwrap();
        assert!(results[..3].iter().all(|result| *result == last), "{results:?}");
        last
    }

    #[test]
    fn both_formats_hold_the_same_rows() {
        let csv =
            "tenant,plan,quotas\r\nacme,pro,calls=1000/50\n\n\"a, \"\"b\"\"\",free,\nown,,calls=7";
        let json = "{\"tenant\":\"acme\",\"plan\":\"pro\",\"quotas\":{\"calls\":{\"quota\":1000,\"burst\":50}}}\n\
                    {\"tenant\":\"a, \\\"b\\\"\",\"plan\":\"free\"}\r\n\n\
                    {\"tenant\":\"own\",\"quotas\":{\"calls\":{\"quota\":7}}}\n";
        let expected = [("a, \"b\"", "free "), ("acme", "pro 1000 Some(50)"), ("own", "- 7 None")];
        let expected = expected.map(|(name, row)| (name.to_owned(), row.to_owned())).to_vec();
        assert_eq!(read(RowFormat::Csv, csv).as_ref(), Ok(&expected));
        assert_eq!(read(RowFormat::JsonLines, json), Ok(expected));
    }

    #[test]
    fn every_mistake_has_its_line() {
        for (line, mistake) in [
            ("acme,prro,", "the policy has no plan \"prro\"; did you mean \"pro\"?"),
            ("acme,pro,cals=7", "the policy has no limit \"cals\"; did you mean \"calls\"?"),
            ("acme,pro,calls=x", "\"calls=x\" is no quota"),
            ("acme,pro,calls=0", "the limit \"calls\":"),
            ("acme,pro,calls=1 calls=2", "two quotas"),
            ("acme,pro", "columns"),
            ("acme,pro,,", "columns"),
            ("acme,\"pro,", "no end"),
            (",pro,", "the name of a tenant"),
            ("acme,,", "a plan or a quota"),
        ] {
            let text = format!("tenant,plan,quotas\nfirst,pro,\n{line}\nlast,pro,");
            let found = read(RowFormat::Csv, &text).unwrap_err();
            assert!(found.starts_with("line 3: ") && found.contains(mistake), "{line}: {found}");
        }
        for (line, mistake) in [
            ("{\"tenant\":\"a\"}", "a plan or a quota"),
            ("{\"plan\":\"pro\"}", "\"tenant\" is missing"),
            ("{\"tenant\":\"a\",\"plans\":\"pro\"}", "did you mean \"plan\"?"),
            ("{\"tenant\":\"a\",\"quotas\":{\"calls\":7}}", "/quotas/calls"),
            ("{", "EOF"),
        ] {
            let text = format!("{{\"tenant\":\"first\",\"plan\":\"pro\"}}\n{line}");
            let found = read(RowFormat::JsonLines, &text).unwrap_err();
            assert!(found.starts_with("line 2: ") && found.contains(mistake), "{line}: {found}");
        }
        let long = "x".repeat(MAX_LINE + 1);
        assert!(read(RowFormat::Csv, &long).unwrap_err().starts_with("line 1: "));
        assert!(read(RowFormat::Csv, "acme,pro,\n").unwrap_err().contains("the header is not"));
        assert!(read(RowFormat::Csv, "").unwrap_err().contains("the first line is not"));
    }
}
