//! The text format of Prometheus.
//!
//! The format is written by hand: it has one line for each sample. Client libraries have metric
//! types and a registry of their own. Tollgate's counters already exist, because the history and
//! the status of a node read them too. Each value would have to be copied into the registry.

use std::fmt::{Display, Write};

use tollgate::observe::Observed;

/// The media type of an [`Exposition`]: Prometheus's text format, version 0.0.4.
///
/// Every scraper reads this format, and `promtool` can check it. OpenMetrics has neither advantage,
/// and gives each counter two names.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A metric family: the samples of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The name of the metric, with its unit.
    pub name: &'static str,
    /// The type of the metric.
    pub kind: Kind,
    /// The names of the labels, in the order in which the label values are given.
    pub labels: &'static [&'static str],
    /// The help text: one sentence without a full stop.
    pub help: &'static str,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value that only grows until the process ends.
    Counter,
    /// A value that can grow and shrink.
    Gauge,
    /// A distribution: values counted by size.
    Histogram,
}

impl Kind {
    /// Returns the name of the type in the text format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A page of metrics in Prometheus's text format. The samples are ordered by family.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// Writes a line for each of `samples`, which are pairs of label values and a value, as a
    /// sample of `family`. Writes nothing for a family without samples. Leaves out labels with an
    /// empty value, because Prometheus treats an empty label as a missing label.
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

    /// Writes a histogram of `family` for each of `samples`. The durations are written in seconds.
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

    /// Returns the page as text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn describe(&mut self, family: &Family) {
        let Family { name, kind, help, .. } = family;
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        // Quotes are not escaped in help texts.
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

/// Converts microseconds to seconds, for display only.
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
