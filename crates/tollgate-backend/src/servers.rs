//! A shard's servers, from the policy file's words to the store's settings.

use std::fs::File;
use std::path::Path;
use std::time::Duration;
use std::{env, io};

use tollgate_policy::{KeySource, Reads, RedisSettings, ShardSettings, StepForm, TlsFiles};
use tollgate_redis::{
    Address, Choice, Credentials, Endpoint, LinkLimits, SecretSource, ShardSettings as Servers, Tls,
};

use crate::error::{OpenError, SecretError};

/// The servers of `shard`, each with the user and the certificates that `redis` names for all.
///
/// # Errors
/// [`OpenError::Endpoint`] for the first text that names no server.
pub(crate) fn servers(redis: &RedisSettings, shard: &ShardSettings) -> Result<Servers, OpenError> {
    let endpoint = |url: &str, key: &str| {
        let name = &shard.name;
        endpoint(redis, url).map_err(|error| OpenError::Endpoint {
            key: format!("store.redis.shards.{name}.{key}"),
            error,
        })
    };
    let replicas = shard.replicas.iter().map(|url| endpoint(url, "replicas"));
    Ok(Servers {
        replicas: replicas.collect::<Result<_, _>>()?,
        reads: match redis.reads {
            Reads::Replicas => tollgate_redis::Reads::Replicas,
            Reads::Primaries => tollgate_redis::Reads::Primary,
        },
        link: link_limits(redis.deadline),
        ..Servers::new(endpoint(&shard.primary, "primary")?)
    })
}

/// Whether the files and variables are there that each new connection reads.
///
/// # Errors
/// [`OpenError`] names the first that is not.
pub(crate) fn check_sources(redis: &RedisSettings) -> Result<(), OpenError> {
    let secret = |error| OpenError::Secret { key: "store.redis.password", error };
    match &redis.password {
        Some(KeySource::Environment { name }) => {
            env::var(name)
                .map_err(|error| secret(SecretError::Environment { name: name.clone(), error }))?;
        }
        Some(KeySource::File { path }) => {
            open(path).map_err(|error| secret(SecretError::File { path: path.clone(), error }))?;
        }
        Some(KeySource::Random) | None => {}
    }
    let identity = redis.tls.identity.as_ref();
    let files = [
        ("store.redis.tls.authorities", redis.tls.authorities.as_deref()),
        ("store.redis.tls.certificate", identity.map(|identity| &*identity.certificate)),
        ("store.redis.tls.key", identity.map(|identity| &*identity.key)),
    ];
    for (key, path) in files {
        let Some(path) = path else { continue };
        open(path).map_err(|error| OpenError::Certificates {
            key,
            path: path.to_owned(),
            error,
        })?;
    }
    Ok(())
}

/// How the step is to run.
pub(crate) const fn choice(step: StepForm) -> Choice {
    match step {
        StepForm::Automatic => Choice::Best,
        StepForm::Function => Choice::Function,
        StepForm::Script => Choice::Script,
    }
}

fn endpoint(redis: &RedisSettings, url: &str) -> Result<Endpoint, tollgate_redis::EndpointError> {
    let endpoint: Endpoint = url.parse()?;
    // What the URL says of one server goes before what is said of all.
    let credentials = Credentials {
        user: endpoint.credentials.user.clone().or_else(|| redis.user.as_deref().map(String::from)),
        password: endpoint.credentials.password.clone().or_else(|| password(redis)),
    };
    let endpoint = endpoint.with_credentials(credentials);
    match &endpoint.address {
        Address::Tcp { tls: Some(_), .. } => endpoint.with_tls(tls(&redis.tls)),
        Address::Tcp { tls: None, .. } | Address::Unix(_) => Ok(endpoint),
    }
}

fn password(redis: &RedisSettings) -> Option<SecretSource> {
    match redis.password.as_ref()? {
        KeySource::Environment { name } => Some(SecretSource::Env(name.clone())),
        KeySource::File { path } => Some(SecretSource::File(path.clone())),
        // No server knows a password that this process makes up.
        KeySource::Random => None,
    }
}

fn tls(files: &TlsFiles) -> Tls {
    let client = files.identity.as_ref();
    Tls {
        authorities: files.authorities.clone(),
        client: client.map(|identity| (identity.certificate.clone(), identity.key.clone())),
        server_name: None,
    }
}

/// Waits for a server that is as slow as the deadline allows; it would be never found otherwise.
fn link_limits(deadline: Duration) -> LinkLimits {
    let usual = LinkLimits::default();
    LinkLimits {
        seek: usual.seek.max(deadline),
        connect: usual.connect.max(deadline),
        proof: usual.proof.max(deadline),
        heartbeat_answer: usual.heartbeat_answer.max(deadline),
        ..usual
    }
}

/// Opens and does not read: what it holds is read by each connection anew.
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::num::NonZeroU32;

    use tollgate_policy::TlsIdentity;
    use tollgate_redis::Secret;

    use super::*;

    /// Shards of these names, each with a server at its place in the list.
    pub(crate) fn redis(names: &[&str]) -> RedisSettings {
        let shard = |(place, name): (usize, &&str)| ShardSettings {
            name: (*name).into(),
            primary: format!("redis://10.0.0.{place}").into(),
            replicas: vec![format!("rediss://10.0.1.{place}:7000").into()],
            weight: NonZeroU32::MIN,
        };
        RedisSettings {
            shards: names.iter().enumerate().map(shard).collect(),
            route_by: None,
            deadline: Duration::from_millis(15),
            nodes: NonZeroU32::MIN,
            clock: tollgate_policy::DecidingClock::Application,
            reads: Reads::Replicas,
            remember_refusals: tollgate_policy::RememberRefusals::Remember,
            step: StepForm::Automatic,
            user: None,
            password: None,
            tls: TlsFiles::default(),
            revealed: Vec::new(),
        }
    }

    #[test]
    fn a_server_is_reached_as_its_url_says_or_else_as_all_are() {
        let mut redis = redis(&["a"]);
        redis.user = Some("tollgate".into());
        redis.password = Some(KeySource::Environment { name: "PASSWORD".into() });
        redis.shards[0].replicas = vec!["redis://reader:secret@10.0.1.0".into()];
        let servers = servers(&redis, &redis.shards[0]).unwrap();
        let shared = SecretSource::Env("PASSWORD".into());
        let all = Credentials { user: Some("tollgate".into()), password: Some(shared) };
        assert_eq!(servers.primary.credentials, all);
        let own = SecretSource::Given(Secret::new("secret"));
        let own = Credentials { user: Some("reader".into()), password: Some(own) };
        assert_eq!(servers.replicas[0].credentials, own);
    }

    #[test]
    fn certificates_are_for_servers_that_are_asked_for_tls() {
        let mut redis = redis(&["a"]);
        redis.tls.authorities = Some("ca.pem".into());
        let identity = TlsIdentity { certificate: "node.pem".into(), key: "node.key".into() };
        redis.tls.identity = Some(identity);
        let servers = servers(&redis, &redis.shards[0]).unwrap();
        let tls_of = |endpoint: &Endpoint| match &endpoint.address {
            Address::Tcp { tls, .. } => tls.clone(),
            Address::Unix(_) => None,
        };
        assert_eq!(tls_of(&servers.primary), None);
        let tls = tls_of(&servers.replicas[0]).unwrap();
        assert_eq!(tls.authorities, Some("ca.pem".into()));
        assert_eq!(tls.client, Some(("node.pem".into(), "node.key".into())));
    }

    #[test]
    fn what_cannot_be_used_is_told_with_its_key() {
        let mut broken = redis(&["a"]);
        broken.shards[0].replicas = vec!["http://10.0.1.0".into()];
        let told = servers(&broken, &broken.shards[0]).unwrap_err().to_string();
        assert!(told.starts_with("store.redis.shards.a.replicas: http://10.0.1.0"), "{told}");

        let mut missing = redis(&["a"]);
        missing.tls.authorities = Some("/no/such/ca.pem".into());
        let told = check_sources(&missing).unwrap_err().to_string();
        assert!(told.starts_with("store.redis.tls.authorities: "), "{told}");
        assert!(told.contains("/no/such/ca.pem"), "{told}");
        missing.password = Some(KeySource::File { path: "/no/such/password".into() });
        let told = check_sources(&missing).unwrap_err().to_string();
        assert!(told.starts_with("store.redis.password: "), "{told}");
    }

    #[test]
    fn a_server_far_away_is_found_within_the_deadline_that_is_set_for_it() {
        let mut far = redis(&["a"]);
        far.deadline = Duration::from_millis(700);
        let link = servers(&far, &far.shards[0]).unwrap().link;
        assert_eq!([link.seek, link.connect, link.proof, link.heartbeat_answer], [far.deadline; 4]);
        far.deadline = Duration::from_millis(2);
        assert_eq!(servers(&far, &far.shards[0]).unwrap().link, LinkLimits::default());
    }
}
