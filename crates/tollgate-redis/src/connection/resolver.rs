//! The resolver for host names of servers.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
pub use tollgate_link::MAX_ADDRESSES;
use tollgate_link::connect_any;

/// The longest time for a lookup if an earlier result is known. After this time, the earlier result
/// is used, and the rest of the connect time remains for connecting.
pub const LOOKUP_MAX: Duration = Duration::from_millis(250);

/// The addresses of a host name, or the error of the lookup.
pub type LookupResult<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// A resolver for host names.
pub trait Lookup: fmt::Debug + Send + Sync {
    /// Returns the current addresses of `host`, each with `port`. An implementation needs no time
    /// limit, because the caller limits the time of the lookup.
    fn look_up<'a>(&'a self, host: &'a str, port: u16) -> LookupResult<'a>;
}

/// Resolves a server's host name for each new connection. If the name refers to another address
/// after a failover, the next connection uses the new address.
///
/// If the lookup is slow, fails, or finds no address, the last known addresses are used.
#[derive(Clone, Debug, Default)]
pub struct NameResolver {
    /// The lookup, or `None` for the system's resolver.
    lookup: Option<Arc<dyn Lookup>>,
    last: Arc<Mutex<Vec<SocketAddr>>>,
    #[cfg(feature = "simulation")]
    network: tollgate_link::simulation::CapturedNetwork,
}

impl NameResolver {
    /// Creates a resolver that uses `lookup` instead of the system's resolver.
    #[must_use]
    pub fn by(lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup: Some(lookup), ..Self::default() }
    }

    /// Returns a resolver for the name of another server. The new resolver uses the same lookup and
    /// does not contain the results of this resolver.
    pub(crate) fn of_another(&self) -> Self {
        Self { last: Arc::default(), ..self.clone() }
    }

    /// Returns the network that replaces TCP in a simulation, or `None` outside of a simulation.
    #[cfg(feature = "simulation")]
    pub(super) fn network(&self) -> Option<&dyn tollgate_link::simulation::Network> {
        self.network.0.as_deref()
    }

    /// Connects to an address of `host`, without a time limit. If `host` is a name with several
    /// addresses, an address that does not answer does not block the others.
    pub(super) async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        match host.parse::<IpAddr>() {
            Ok(address) => TcpStream::connect((address, port)).await,
            Err(_) => connect_any(&self.addresses(host, port).await?).await,
        }
    }

    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let before = self.last.lock().clone();
        let looked = if before.is_empty() {
            self.look_up(host, port).await
        } else {
            let late = || io::Error::from(io::ErrorKind::TimedOut);
            let looked = timeout(LOOKUP_MAX, self.look_up(host, port)).await;
            looked.unwrap_or_else(|_| Err(late()))
        };
        match looked {
            Ok(mut found) if !found.is_empty() => {
                found.truncate(MAX_ADDRESSES);
                self.last.lock().clone_from(&found);
                Ok(found)
            }
            _ if !before.is_empty() => Ok(before),
            Ok(_) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
            Err(error) => Err(error),
        }
    }

    async fn look_up(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match &self.lookup {
            Some(lookup) => lookup.look_up(host, port).await,
            None => Ok(lookup_host((host, port)).await?.collect()),
        }
    }
}

/// Two resolvers are equal if they use the same lookup, even if their last results differ.
impl PartialEq for NameResolver {
    fn eq(&self, other: &Self) -> bool {
        match (&self.lookup, &other.lookup) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for NameResolver {}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    /// The time limit of a wait. The kernel keeps trying to connect for longer.
    const PATIENCE: Duration = Duration::from_secs(20);
    /// The time after which an attempt to connect counts as unanswered.
    const PAUSE: Duration = Duration::from_millis(300);

    /// The result of the lookup, as the test sets it.
    #[derive(Clone, Debug)]
    enum Script {
        Leads(Vec<SocketAddr>),
        Fails,
        Never,
    }

    #[derive(Debug)]
    struct ScriptedLookup(Mutex<Script>);

    impl Lookup for ScriptedLookup {
        fn look_up<'a>(&'a self, _host: &'a str, _port: u16) -> LookupResult<'a> {
            let word = self.0.lock().clone();
            Box::pin(async move {
                match word {
                    Script::Leads(addresses) => Ok(addresses),
                    Script::Fails => Err(io::Error::other("SERVFAIL")),
                    Script::Never => std::future::pending().await,
                }
            })
        }
    }

    fn at(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 6379))
    }

    #[tokio::test]
    async fn a_name_leads_where_it_is_said_to_lead_now_and_else_where_it_led_last() {
        let lookup = Arc::new(ScriptedLookup(Mutex::new(Script::Fails)));
        let names = NameResolver::by(Arc::clone(&lookup) as Arc<dyn Lookup>);
        let leads = async || names.addresses("limits.example", 6379).await;
        assert_eq!(leads().await.unwrap_err().to_string(), "SERVFAIL");
        *lookup.0.lock() = Script::Leads(Vec::new());
        assert_eq!(leads().await.unwrap_err().kind(), io::ErrorKind::NotFound);
        for (word, led) in [
            (Script::Leads(vec![at(1)]), vec![at(1)]),
            (Script::Fails, vec![at(1)]),
            (Script::Leads(Vec::new()), vec![at(1)]),
            (Script::Leads(vec![at(2), at(3)]), vec![at(2), at(3)]),
            (Script::Never, vec![at(2), at(3)]),
            (Script::Leads(vec![at(4); 99]), vec![at(4); MAX_ADDRESSES]),
        ] {
            *lookup.0.lock() = word.clone();
            assert_eq!(leads().await.unwrap(), led, "{word:?}");
        }
        let other = names.of_another();
        *lookup.0.lock() = Script::Fails;
        assert!(other.addresses("other.example", 6379).await.is_err(), "it never led anywhere");
        assert_eq!(names, other);
        assert_ne!(names, NameResolver::default());
    }

    /// Every attempt to connect would begin with the address that does not answer, and would spend
    /// all its time there.
    #[tokio::test]
    async fn an_address_that_does_not_answer_does_not_keep_a_node_from_the_others() {
        let silent = TcpSocket::new_v4().unwrap();
        silent.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let silent = silent.listen(1).unwrap();
        let never = silent.local_addr().unwrap();
        // The kernel answers no further attempt once this many connections wait to be accepted.
        let mut waiting = Vec::new();
        while let Ok(stream) = timeout(PAUSE, TcpStream::connect(never)).await {
            waiting.push(stream.unwrap());
        }
        let answers = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let answers = (answers.local_addr().unwrap(), answers);
        let leads = Script::Leads(vec![never, answers.0]);
        let names = NameResolver::by(Arc::new(ScriptedLookup(Mutex::new(leads))));
        let connected = timeout(PATIENCE, names.connect("limits.example", 6379)).await;
        let connected = connected.expect("the other address answers").unwrap();
        assert_eq!(connected.peer_addr().unwrap(), answers.0);
    }
}
