//! The policy file while it is in force: read anew, all of it or nothing.

mod fixed;
mod status;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::{Limiter, Revision};
use tollgate_policy::{Finding, LoadError, LoadedPolicy, Settings};

use crate::backend::Backend;
use crate::deny_cache_ttl::Refunds;

pub use status::{Refusal, ReloadStatus};

/// How often the file is looked at. It is read anew once it was the same at two looks: so an editor
/// that writes it piece by piece is not taken at half its word.
pub const LOOK_PERIOD: Duration = Duration::from_millis(500);

/// The file behind a limiter's policy.
///
/// A reload puts a policy in the place of the one in force that was read whole and without a
/// mistake, and changes nothing of what needs a restart; else the one in force stays, and it is
/// known why. All reloads of one file are made here, one after the other.
pub struct PolicyFile {
    path: PathBuf,
    limiter: Arc<Limiter<Backend>>,
    refunds: Refunds,
    listeners: ListenerState,
    /// With which the store was opened.
    settings: Settings,
    /// What was taken last, whoever asked for it. Held by the one reload that is under way.
    taken: Mutex<Option<Look>>,
    reloads: Mutex<ReloadStatus>,
    on_reload: Box<dyn Fn(&Revision) + Send + Sync>,
}

/// Whether the listeners that the file names are this process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerState {
    /// They are open: the file cannot move them.
    Open,
    /// That of the administration is, with its page; the others are not.
    Administration,
    /// They are not: whatever the file says of them changes nothing here.
    Ignored,
}

/// What a reload did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// Nothing: the file says what is in force.
    Unchanged,
    /// It put another policy in force.
    CasOutcome {
        /// The policy's version.
        version: Arc<str>,
        /// What works, but hardly as it was meant.
        warnings: Vec<Finding>,
    },
}

/// Why the policy in force stays so.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file cannot be used.
    Load(LoadError),
    /// It changes what takes a restart.
    NeedsRestart {
        /// The keys of the file that say so, such as `store.redis.shards`.
        keys: Vec<String>,
    },
}

impl PolicyFile {
    /// The file at `path`, of which `limiter` has its policy and `settings` were in it.
    #[must_use]
    pub fn new(
        path: &Path,
        limiter: Arc<Limiter<Backend>>,
        settings: Settings,
        refunds: Refunds,
    ) -> Self {
        Self {
            path: path.to_owned(),
            limiter,
            refunds,
            listeners: ListenerState::Ignored,
            settings,
            taken: Mutex::default(),
            reloads: Mutex::default(),
            on_reload: Box::new(|_| {}),
        }
    }

    /// Sets whether the listeners that the file names are open.
    #[must_use]
    pub fn with_listener_state(mut self, listeners: ListenerState) -> Self {
        self.listeners = listeners;
        self
    }

    /// Tells `on_reload` of each policy that is put in force, for who keeps a part of it.
    #[must_use]
    pub fn with_on_reload(mut self, on_reload: impl Fn(&Revision) + Send + Sync + 'static) -> Self {
        self.on_reload = Box::new(on_reload);
        self
    }

    /// How the reloads went.
    #[must_use]
    pub fn status(&self) -> ReloadStatus {
        self.reloads.lock().clone()
    }

    /// What the limiter's clock shows.
    fn time_of_day(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.limiter.now().as_millis())
    }

    /// The version of the policy in force.
    #[must_use]
    pub fn version(&self) -> Arc<str> {
        Arc::clone(self.limiter.policy().version())
    }

    /// Reads the file anew. It reads from a disk, and may block for as long as that takes.
    ///
    /// # Errors
    /// [`ReloadError`]: the policy in force stays so, whole.
    pub fn reload(&self) -> Result<Reloaded, ReloadError> {
        let mut taken = self.taken.lock();
        let bytes = tollgate_policy::read(&self.path);
        *taken = Some(look_of(&bytes));
        self.take(bytes)
    }

    fn take(&self, bytes: io::Result<Vec<u8>>) -> Result<Reloaded, ReloadError> {
        let loaded = match bytes {
            Ok(bytes) => tollgate_policy::load_bytes(&self.path, bytes),
            Err(error) => Err(LoadError::Io { path: self.path.clone(), error }),
        };
        let reloaded = loaded.map_err(ReloadError::Load).and_then(|loaded| self.replace(loaded));
        let policy = self.limiter.policy();
        let mut reloads = self.reloads.lock();
        match &reloaded {
            Ok(Reloaded::Unchanged) => reloads.in_force_again(),
            Ok(Reloaded::CasOutcome { warnings, .. }) => {
                reloads.replaced(self.time_of_day());
                let (limits, rules) = (policy.limits().len(), policy.rules().len());
                tracing::info!(version = %policy.version(), limits, rules, "the policy was read anew");
                warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            }
            Err(error) => {
                reloads.refused(self.time_of_day(), error.to_string());
                tracing::warn!(version = %policy.version(), "the policy in force stays so: {error}");
            }
        }
        reloaded
    }

    /// Reads the file anew whenever it says something else than what was taken last, until it is
    /// dropped. What cannot be used is told once, and so is a file that is not there. A file that is
    /// renamed over the old one and a link that leads elsewhere are changes like any other.
    pub async fn watch(self: Arc<Self>) {
        let mut looks = interval(LOOK_PERIOD);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = None;
        loop {
            looks.tick().await;
            let path = self.path.clone();
            let look = move || look_of(&tollgate_policy::read(&path));
            let Ok(look) = spawn_blocking(look).await else { continue };
            // A file may be on its way: what is not the same at two looks is not taken.
            if before.as_ref() != Some(&look) {
                before = Some(look);
                continue;
            }
            let file = Arc::clone(&self);
            // A panic there leaves everything as it was.
            let _ = spawn_blocking(move || file.take_once(look)).await;
        }
    }

    /// Takes what was found, unless it was taken last or is not there any more.
    fn take_once(&self, look: Look) {
        let mut taken = self.taken.lock();
        if taken.as_ref() == Some(&look) {
            return;
        }
        let bytes = tollgate_policy::read(&self.path);
        if look_of(&bytes) == look {
            *taken = Some(look);
            // Whoever looks into it hears of a refusal; it is told in the log as well.
            let _ = self.take(bytes);
        }
    }

    fn replace(&self, loaded: LoadedPolicy) -> Result<Reloaded, ReloadError> {
        let LoadedPolicy { policy, settings, version, warnings } = loaded;
        if *version == **self.limiter.policy().version() {
            return Ok(Reloaded::Unchanged);
        }
        let keys = fixed::changed(&self.settings, &settings, self.listeners);
        if !keys.is_empty() {
            return Err(ReloadError::NeedsRestart { keys });
        }
        let revision = Revision::new(policy, version);
        let version = Arc::clone(revision.version());
        self.limiter.store().follow(&settings, &revision, self.refunds);
        (self.on_reload)(&revision);
        self.limiter.replace_policy(revision);
        Ok(Reloaded::CasOutcome { version, warnings })
    }
}

/// What was found at a look: the file's bytes, or why there are none.
type Look = Result<Vec<u8>, io::ErrorKind>;

fn look_of(bytes: &io::Result<Vec<u8>>) -> Look {
    match bytes {
        Ok(bytes) => Ok(bytes.clone()),
        Err(error) => Err(error.kind()),
    }
}

impl fmt::Debug for PolicyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::NeedsRestart { keys } => {
                let keys = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
                write!(
                    f,
                    "{keys} cannot change while this process runs: restart it, or put back what \
                     was there"
                )
            }
        }
    }
}

impl std::error::Error for ReloadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Load(error) => Some(error),
            Self::NeedsRestart { .. } => None,
        }
    }
}
