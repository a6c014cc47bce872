//! The listeners of a process. Flags have precedence over the policy file.

use std::path::PathBuf;
use std::{env, fs};

use tollgate_policy::{
    DashboardMode, DashboardSettings, KeySource, ListenerSettings, ServeSettings,
};
use tollgate_server::http::AllowedHosts;
use tollgate_server::{Access, ClientAuthorities, Dashboard, Listen, ServerTls, Tokens};

use crate::certificates::NamedCertificates;
use crate::failure::Failure;

/// The kind of service that a listener offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    Grpc,
    Resp,
    Admin,
}

/// The listeners that the flags configure.
#[derive(Debug, Default)]
pub(crate) struct ListenFlags {
    pub(crate) http: Option<Listen>,
    pub(crate) grpc: Option<Listen>,
    pub(crate) resp: Option<Listen>,
    pub(crate) admin: Option<Listen>,
}

/// Whether listeners that other machines can reach may accept clients without a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    Refused,
    Allowed,
}

/// The listeners that the process opens.
#[derive(Clone, Debug)]
pub(crate) struct Listeners(pub(crate) Vec<ListenerConfig>);

/// A listener: its address, tokens and certificates.
#[derive(Clone, Debug)]
pub(crate) struct ListenerConfig {
    pub(crate) kind: Kind,
    pub(crate) listen: Listen,
    pub(crate) access: Access,
    /// The file from which `access` was read, if any.
    pub(crate) tokens_file: Option<PathBuf>,
    pub(crate) tls: Option<ServerTls>,
    /// The settings for browsers.
    pub(crate) browsers: BrowserAccess,
}

/// The settings of a listener for browsers.
#[derive(Clone, Debug, Default)]
pub(crate) struct BrowserAccess {
    pub(crate) dashboard: Dashboard,
    /// The host names that a browser may use. `None` allows any name.
    pub(crate) hosts: Option<AllowedHosts>,
}

impl BrowserAccess {
    /// Returns the settings for browsers of the admin `listener`, according to the policy file.
    fn new(listener: &ListenerConfig, settings: &DashboardSettings) -> Self {
        let dashboard = match settings.shown {
            DashboardMode::Enabled => Dashboard::Enabled,
            DashboardMode::Disabled => Dashboard::Disabled,
        };
        Self { dashboard, hosts: Some(listener.allowed_hosts(&settings.hosts)) }
    }

    /// Returns the settings for browsers of the HTTP `listener`. The host names are those that are
    /// `listed` in the policy file. If no name is listed, and a token or a certificate keeps pages
    /// of other sites away, any name is accepted.
    fn of_programs(listener: &ListenerConfig, listed: &[Box<str>]) -> Self {
        let is_open = matches!(listener.access, Access::Open) || !listed.is_empty();
        let hosts = is_open.then(|| listener.allowed_hosts(listed).for_programs());
        Self { hosts, ..Self::default() }
    }
}

impl Kind {
    /// Returns the name of the listener in files, flags and messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Resp => "resp",
            Self::Admin => "admin",
        }
    }

    /// Returns the protocols that clients of the listener may use with TLS, the preferred one
    /// first.
    const fn protocols(self) -> &'static [&'static str] {
        match self {
            Self::Http | Self::Admin => &["h2", "http/1.1"],
            Self::Grpc => &["h2"],
            Self::Resp => &[],
        }
    }
}

impl Listeners {
    /// Returns the listeners of `file` and of `flags_given`. The flags have precedence. Reads the
    /// tokens and the certificates from their files.
    pub(crate) fn new(file: &ServeSettings, flags_given: ListenFlags) -> Result<Self, Failure> {
        let all = [
            (Kind::Http, &file.http, flags_given.http),
            (Kind::Grpc, &file.grpc, flags_given.grpc),
            (Kind::Resp, &file.resp, flags_given.resp),
            (Kind::Admin, &file.admin, flags_given.admin),
        ];
        let mut listeners = Vec::new();
        for (kind, settings, listen) in all {
            let listen = match (listen, settings) {
                (Some(listen), _) => listen,
                (None, Some(settings)) => settings
                    .listen
                    .parse()
                    .map_err(|error| format!("serve.{}.listen: {error}", kind.name()))?,
                (None, None) => continue,
            };
            let listener = ListenerConfig::new(kind, listen, settings.as_ref())?;
            let hosts = settings.as_ref().map_or(&[][..], |settings| &settings.hosts);
            listeners.push(listener.with_browsers(&file.dashboard, hosts));
        }
        if listeners.iter().all(|listener| listener.kind == Kind::Admin) {
            let message = "no listener is configured: add one, such as --http 127.0.0.1:8181, or \
                           `serve: { http: { listen: \"127.0.0.1:8181\" } }` in the policy file";
            return Err(message.into());
        }
        Ok(Self(listeners))
    }

    /// Returns whether the node keeps a sample of its requests. The sample is kept if there is an
    /// admin listener, which can simulate the requests, and if the policy file does not disable the
    /// sample.
    pub(crate) fn samples_traffic(&self, file: &ServeSettings) -> bool {
        file.dashboard.samples_traffic && self.0.iter().any(|one| one.kind == Kind::Admin)
    }

    /// Returns the certificates of all listeners.
    pub(crate) fn certificates(&self) -> Vec<NamedCertificates> {
        let named = |listener: &ListenerConfig| {
            let tls = listener.tls.clone()?;
            Some(NamedCertificates::of_listener(listener.kind.name(), tls))
        };
        self.0.iter().filter_map(named).collect()
    }

    /// Checks that no listener accepts clients from a network without a token, unless `exposure`
    /// allows it.
    pub(crate) fn check(&self, exposure: Exposure) -> Result<(), Failure> {
        if exposure == Exposure::Allowed {
            return Ok(());
        }
        self.0.iter().try_for_each(ListenerConfig::check)
    }
}

impl ListenerConfig {
    pub(crate) fn new(
        kind: Kind,
        listen: Listen,
        settings: Option<&ListenerSettings>,
    ) -> Result<Self, Failure> {
        let key = |key: &str| format!("serve.{}.{key}", kind.name());
        let (mut access, mut tokens_file, mut tls) = (Access::Open, None, None);
        if let Some(source) = settings.and_then(|settings| settings.tokens.as_ref()) {
            let text = text(source).map_err(|error| format!("{}: {error}", key("tokens")))?;
            let tokens =
                Tokens::parse(&text).map_err(|error| format!("{}: {error}", key("tokens")))?;
            access = Access::Tokens(tokens);
            tokens_file = match source {
                KeySource::File { path } => Some(path.clone()),
                KeySource::Environment { .. } | KeySource::Random => None,
            };
        }
        if let Some(files) = settings.and_then(|settings| settings.tls.as_ref()) {
            let clients =
                files.clients.clone().map_or(ClientAuthorities::None, ClientAuthorities::Required);
            let read = ServerTls::read(&files.certificate, &files.key, clients, kind.protocols());
            tls = Some(read.map_err(|error| format!("{}: {error}", key("tls")))?);
        }
        let browsers = BrowserAccess::default();
        Ok(Self { kind, listen, access, tokens_file, tls, browsers })
    }

    /// Sets what this listener serves to browsers, if it is the admin listener or the HTTP
    /// listener. `hosts` are the host names that the policy file lists for the HTTP listener.
    pub(crate) fn with_browsers(
        mut self,
        settings: &DashboardSettings,
        hosts: &[Box<str>],
    ) -> Self {
        match self.kind {
            Kind::Admin => self.browsers = BrowserAccess::new(&self, settings),
            Kind::Http => self.browsers = BrowserAccess::of_programs(&self, hosts),
            Kind::Grpc | Kind::Resp => {}
        }
        self
    }

    fn allowed_hosts(&self, listed: &[Box<str>]) -> AllowedHosts {
        match &self.tls {
            Some(_) => AllowedHosts::certified(listed),
            None => AllowedHosts::new(&self.listen, &self.access, listed),
        }
    }

    /// Checks that the listener does not accept clients from a network without a token or a client
    /// certificate.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        // A client certificate counts like a token.
        if self.tls.as_ref().is_some_and(ServerTls::requires_client_certificates) {
            return Ok(());
        }
        let exposed = |error| format!("the {} listener: {error}", self.kind.name());
        self.access.check(&self.listen).map_err(exposed).map_err(Failure::from)
    }
}

/// Reads the text of `source`.
fn text(source: &KeySource) -> Result<String, String> {
    match source {
        KeySource::Environment { name } => {
            env::var(name).map_err(|error| format!("the environment variable {name}: {error}"))
        }
        KeySource::File { path } => fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display())),
        KeySource::Random => Err("a listener's tokens need a source: `env` or `file`".into()),
    }
}
