//! Replaces the ports of a page by free ports of this machine.

use std::net::TcpListener;

/// The ports of a page, each with its free port.
pub(crate) struct Ports(Vec<(&'static str, String)>);

impl Ports {
    /// Returns a different free port for each of `named`.
    pub(crate) fn free(named: &[&'static str]) -> Self {
        let held: Vec<_> =
            named.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let free = held.iter().map(|listener| listener.local_addr().unwrap().port().to_string());
        Self(named.iter().copied().zip(free).collect())
    }

    /// Returns `text` with the free ports. Longer numbers that contain a port stay unchanged.
    pub(crate) fn put_into(&self, text: &str) -> String {
        let free = |number: &str| self.0.iter().find(|(named, _)| *named == number);
        numbers(text)
            .map(|(before, number)| {
                before.to_owned() + free(number).map_or(number, |(_, free)| free)
            })
            .collect()
    }

    /// Returns the first free port in `text`.
    pub(crate) fn first_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_free = |number: &&str| self.0.iter().any(|(_, free)| free == number);
        numbers(text).map(|(_, number)| number).find(is_free)
    }
}

/// Splits `text` into numbers with the text before each. The text after the last number comes with
/// an empty number.
fn numbers(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let begin = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let (before, number) = text.split_at(begin);
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        let (number, after) = number.split_at(end);
        rest = (!number.is_empty()).then_some(after);
        Some((before, number))
    })
}

#[test]
fn only_whole_numbers_are_ports() {
    let ports = Ports(vec![("90", "1234".to_owned())]);
    let text = ports.put_into("a:90 b:900, x:90");
    assert_eq!(text, "a:1234 b:900, x:1234");
    assert_eq!(ports.first_in("900 x:1234/"), Some("1234"));
    assert_eq!((ports.put_into(""), ports.first_in("90")), (String::new(), None));
}
