//! The text format that Prometheus scrapes.

use std::fmt::{Display, Write};

use tollgate::observe::Observed;

/// The media type of an [`Exposition`]: Prometheus's text format, version 0.0.4.
///
/// Every scraper reads it, and it is what `promtool` checks; of OpenMetrics, whose counters have
/// two names, that is not so.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the samples of one name mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name, with its unit.
    pub name: &'static str,
    /// What becomes of its values.
    pub kind: Kind,
    /// The names of its labels, in the order of their values.
    pub labels: &'static [&'static str],
    /// What it tells, in one sentence without its end.
    pub help: &'static str,
}

/// What becomes of the values of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They only grow, until the process ends.
    Counter,
    /// They go both ways.
    Gauge,
    /// They are counted by how large they are.
    Histogram,
}

impl Kind {
    /// Its word in the format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A page of samples, family by family.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// A sample of `family` for each of `samples`: the values of its labels, and its own. Nothing
    /// is told of a family without samples, nor of a label without a value: to Prometheus an empty
    /// label is one that is not there.
    pub fn family<const N: usize, L: AsRef<str>, V: Display>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = ([L; N], V)>,
    ) {
        debug_assert_eq!(family.labels.len(), N, "{}", family.name);
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_some() {
            self.describe(family);
        }
        for (labels, value) in samples {
            self.text.push_str(family.name);
            self.labels(family.labels.iter().copied().zip(&labels));
            self.value(value);
        }
    }

    /// A histogram of durations of `family`, in seconds, for each of `samples`.
    pub fn histogram<const N: usize, L: AsRef<str>>(
        &mut self,
        family: &Family,
        samples: impl IntoIterator<Item = ([L; N], Observed)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_some() {
            self.describe(family);
        }
        for (labels, observed) in samples {
            let own = || family.labels.iter().copied().zip(labels.iter().map(AsRef::as_ref));
            for (bound, count) in observed.cumulative() {
                let bound =
                    bound.map_or_else(|| "+Inf".to_owned(), |bound| seconds(bound).to_string());
                let _ = write!(self.text, "{}_bucket", family.name);
                self.labels(own().chain([("le", &*bound)]));
                self.value(count);
            }
            let _ = write!(self.text, "{}_sum", family.name);
            self.labels(own());
            self.value(seconds(observed.sum_micros));
            let _ = write!(self.text, "{}_count", family.name);
            self.labels(own());
            self.value(observed.count());
        }
    }

    /// The page.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn describe(&mut self, family: &Family) {
        let Family { name, kind, help, .. } = family;
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        // Quotes stand for themselves here.
        for char in help.chars() {
            match char {
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                char => self.text.push(char),
            }
        }
        let _ = writeln!(self.text, "\n# TYPE {name} {}", kind.name());
    }

    fn labels<V: AsRef<str>>(&mut self, labels: impl Iterator<Item = (&'static str, V)>) {
        let mut before = '{';
        for (name, value) in labels {
            let value = value.as_ref();
            if value.is_empty() {
                continue;
            }
            self.text.push(before);
            let _ = write!(self.text, "{name}=\"");
            for char in value.chars() {
                match char {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    char => self.text.push(char),
                }
            }
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
    }

    fn value(&mut self, value: impl Display) {
        let _ = writeln!(self.text, " {value}");
    }
}

/// For the page alone: nothing is decided by it.
fn seconds(micros: u64) -> f64 {
    std::time::Duration::from_micros(micros).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use tollgate::observe::Histogram;

    use super::*;

    const PLAIN: Family =
        Family { name: "a_total", kind: Kind::Counter, labels: &["of"], help: "A \\ of\nthem" };

    #[test]
    fn hostile_labels_stay_in_their_quotes() {
        let mut page = Exposition::default();
        page.family(&PLAIN, [(["\"} 1\nb_total{of=\"\\é"], 7)]);
        assert_eq!(
            page.into_text(),
            "# HELP a_total A \\\\ of\\nthem\n# TYPE a_total counter\n\
             a_total{of=\"\\\"} 1\\nb_total{of=\\\"\\\\é\"} 7\n"
        );
    }

    #[test]
    fn a_label_without_a_value_is_none() {
        const SIDED: Family = Family { labels: &["side", "of"], ..PLAIN };
        let mut page = Exposition::default();
        page.family(&SIDED, [(["", ""], 1), (["", "b"], 2), (["a", ""], 3)]);
        let text = page.into_text();
        assert!(
            text.ends_with("\na_total 1\na_total{of=\"b\"} 2\na_total{side=\"a\"} 3\n"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_informed_of_a_family_without_samples() {
        let mut page = Exposition::default();
        page.family(&PLAIN, Vec::<([&str; 1], u64)>::new());
        assert_eq!(page.into_text(), "");
    }

    #[test]
    fn a_histogram_counts_upwards_to_all() {
        const TIME: Family =
            Family { name: "t_seconds", kind: Kind::Histogram, labels: &["listener"], help: "T" };
        let histogram = Histogram::default();
        for micros in [50, 51, 1_000_000_000] {
            histogram.observe(std::time::Duration::from_micros(micros));
        }
        let mut page = Exposition::default();
        page.histogram(&TIME, [(["http"], histogram.read())]);
        let text = page.into_text();
        for line in [
            "t_seconds_bucket{listener=\"http\",le=\"0.00005\"} 1\n",
            "t_seconds_bucket{listener=\"http\",le=\"0.0001\"} 2\n",
            "t_seconds_bucket{listener=\"http\",le=\"1\"} 2\n",
            "t_seconds_bucket{listener=\"http\",le=\"+Inf\"} 3\n",
            "t_seconds_sum{listener=\"http\"} 1000.000101\n",
            "t_seconds_count{listener=\"http\"} 3\n",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
