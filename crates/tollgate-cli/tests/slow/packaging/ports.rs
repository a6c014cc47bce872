//! Free ports of this machine in the place of those that a page names.

use std::net::TcpListener;

/// The ports of a page, each with the free one that stands for it.
pub(crate) struct Ports(Vec<(&'static str, String)>);

impl Ports {
    /// A free port for each of `named`, no two alike.
    pub(crate) fn free(named: &[&'static str]) -> Self {
        let held: Vec<_> =
            named.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let free = held.iter().map(|listener| listener.local_addr().unwrap().port().to_string());
        Self(named.iter().copied().zip(free).collect())
    }

    /// `text` with the free ports in it. A longer number that holds a port stays as it is.
    pub(crate) fn put_into(&self, text: &str) -> String {
        let free = |number: &str| self.0.iter().find(|(named, _)| *named == number);
        numbers(text)
            .map(|(before, number)| {
                before.to_owned() + free(number).map_or(number, |(_, free)| free)
            })
            .collect()
    }

    /// The first free port that `text` names.
    pub(crate) fn first_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        let is_free = |number: &&str| self.0.iter().any(|(_, free)| free == number);
        numbers(text).map(|(_, number)| number).find(is_free)
    }
}

/// Each number of `text` behind what stands before it; what stands behind the last comes with an empty one.
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
