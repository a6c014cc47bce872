//! Reloads of the policy file. A reload either replaces the whole policy or changes nothing.

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
use tollgate::model::Store;
use tollgate::{Limiter, Revision};
use tollgate_policy::{Finding, LoadError, LoadedPolicy, Settings};

use crate::backend::Backend;
use crate::settings::Refunds;

pub use status::{Refusal, ReloadStatus};

/// The time between two checks of the file. A reload waits until two checks in a row find the same
/// content, so the content of a file that an editor writes in several steps is not used too early.
pub const CHECK_PERIOD: Duration = Duration::from_millis(500);

/// The policy file of a limiter.
///
/// A reload replaces the policy in force only if the new file is complete and valid, and changes
/// nothing that needs a restart. In every other case, the old policy stays in force and the status
/// shows the reason. This type makes all reloads of one file, one after the other. The limiter's
/// store is a [`Backend`], or a wrapper `S` around a [`Backend`].
pub struct PolicyFile<S = Backend> {
    path: PathBuf,
    limiter: Arc<Limiter<S>>,
    refunds: Refunds,
    listeners: ListenerState,
    /// The settings with which the store was opened.
    settings: Settings,
    /// The content at the last reload attempt. `None` before the first attempt. The lock is held
    /// during a reload.
    last_attempt: Mutex<Option<FileContent>>,
    /// The content of the policy file at the last check, and the paths of the files with networks
    /// that this content names. A change of such a file also causes a reload.
    named_files: Mutex<(Vec<u8>, Vec<PathBuf>)>,
    reloads: Mutex<ReloadStatus>,
    on_reload: Box<dyn Fn(&Revision) + Send + Sync>,
}

/// Whether this process serves the listeners that the policy file configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerState {
    /// The process serves the listeners, so a reload that changes their addresses needs a restart.
    Open,
    /// The process serves only the admin listener and its dashboard. A reload that changes their
    /// settings needs a restart, and changes of the other listeners have no effect.
    Administration,
    /// The process serves no listener, so changes of the settings of listeners have no effect.
    Ignored,
}

/// The result of a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloaded {
    /// The file contains the policy that is already in force.
    Unchanged,
    /// Another policy is in force now.
    Replaced {
        /// The version of the new policy.
        version: Arc<str>,
        /// Findings about settings of the new policy that are valid but probably not intended.
        warnings: Vec<Finding>,
    },
}

/// The reason why the policy in force was not replaced.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReloadError {
    /// The file cannot be read or has mistakes.
    Load(LoadError),
    /// The file changes settings that need a restart.
    NeedsRestart {
        /// The keys of the changed settings that need a restart, such as `store.redis.shards`.
        keys: Vec<String>,
    },
}

impl<S: Store + AsRef<Backend> + Send + Sync + 'static> PolicyFile<S> {
    /// Creates the reloader for the file at `path`, from which the policy of `limiter` and
    /// `settings` were read.
    #[must_use]
    pub fn new(
        path: &Path,
        limiter: Arc<Limiter<S>>,
        settings: Settings,
        refunds: Refunds,
    ) -> Self {
        Self {
            path: path.to_owned(),
            limiter,
            refunds,
            listeners: ListenerState::Ignored,
            settings,
            last_attempt: Mutex::default(),
            named_files: Mutex::default(),
            reloads: Mutex::default(),
            on_reload: Box::new(|_| {}),
        }
    }

    /// Sets which of the file's listeners this process serves.
    #[must_use]
    pub fn with_listener_state(mut self, listeners: ListenerState) -> Self {
        self.listeners = listeners;
        self
    }

    /// Sets the callback `on_reload`, which receives each new policy. Code that keeps a copy of
    /// some of the policy's values needs the callback.
    #[must_use]
    pub fn with_on_reload(mut self, on_reload: impl Fn(&Revision) + Send + Sync + 'static) -> Self {
        self.on_reload = Box::new(on_reload);
        self
    }

    /// Returns the results of the reloads since the process started.
    #[must_use]
    pub fn status(&self) -> ReloadStatus {
        self.reloads.lock().clone()
    }

    /// Returns the time of the limiter's clock.
    fn time_of_day(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.limiter.now().as_millis())
    }

    /// Returns the version of the policy in force.
    #[must_use]
    pub fn version(&self) -> Arc<str> {
        Arc::clone(self.limiter.policy().version())
    }

    /// Reloads the file. Blocks the thread while the file is read from a disk.
    ///
    /// # Errors
    /// [`ReloadError`] if the content of the file was not used. The policy in force stays
    /// unchanged.
    pub fn reload(&self) -> Result<Reloaded, ReloadError> {
        let mut last_attempt = self.last_attempt.lock();
        let bytes = tollgate_policy::read(&self.path);
        *last_attempt = Some(self.content_of(&bytes));
        self.reload_content(bytes)
    }

    /// Reloads the policy like [`reload`](Self::reload), from `content` instead of the file.
    ///
    /// # Errors
    /// The same as [`reload`](Self::reload).
    pub fn reload_from(&self, content: Vec<u8>) -> Result<Reloaded, ReloadError> {
        let mut last_attempt = self.last_attempt.lock();
        let bytes = Ok(content);
        *last_attempt = Some(self.content_of(&bytes));
        self.reload_content(bytes)
    }

    fn reload_content(&self, bytes: io::Result<Vec<u8>>) -> Result<Reloaded, ReloadError> {
        let loaded = match bytes {
            Ok(bytes) => tollgate_policy::load_bytes(&self.path, bytes),
            Err(error) => Err(LoadError::Io { path: self.path.clone(), error }),
        };
        let reloaded = loaded.map_err(ReloadError::Load).and_then(|loaded| self.replace(loaded));
        let policy = self.limiter.policy();
        let mut reloads = self.reloads.lock();
        match &reloaded {
            Ok(Reloaded::Unchanged) => reloads.in_force_again(),
            Ok(Reloaded::Replaced { warnings, .. }) => {
                reloads.replaced(self.time_of_day());
                let (limits, rules) = (policy.limits().len(), policy.rules().len());
                tracing::info!(version = %policy.version(), limits, rules, "the policy was reloaded");
                warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
            }
            Err(error) => {
                reloads.refused(self.time_of_day(), error.to_string());
                tracing::warn!(version = %policy.version(), "the policy was not reloaded, the previous one stays in force: {error}");
            }
        }
        reloaded
    }

    /// Reloads the file whenever its content differs from the content of the last attempt, until
    /// the future is dropped. An invalid or missing file is logged once. A file that is renamed to
    /// the same path, and a symbolic link with a new target, count as changes too.
    pub async fn watch(self: Arc<Self>) {
        let mut ticks = interval(CHECK_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = None;
        loop {
            ticks.tick().await;
            let file = Arc::clone(&self);
            let content = move || file.content_of(&tollgate_policy::read(&file.path));
            let Ok(content) = spawn_blocking(content).await else { continue };
            // The file may be incomplete, so wait until two checks find the same content.
            if before.as_ref() != Some(&content) {
                before = Some(content);
                continue;
            }
            let file = Arc::clone(&self);
            // A panic in the blocking task leaves the policy in force.
            let _ = spawn_blocking(move || file.reload_once(content)).await;
        }
    }

    /// Reloads the policy from the content in `content`, unless the last attempt had the same
    /// content or the file has changed again.
    fn reload_once(&self, content: FileContent) {
        let mut last_attempt = self.last_attempt.lock();
        if last_attempt.as_ref() == Some(&content) {
            return;
        }
        let bytes = tollgate_policy::read(&self.path);
        if self.content_of(&bytes) == content {
            *last_attempt = Some(content);
            // If the reload is refused, the status shows the reason, and the reason is logged.
            let _ = self.reload_content(bytes);
        }
    }

    fn content_of(&self, bytes: &io::Result<Vec<u8>>) -> FileContent {
        let policy = match bytes {
            Ok(bytes) => Ok(bytes.clone()),
            Err(error) => Err(error.kind()),
        };
        let mut named = self.named_files.lock();
        if let Ok(bytes) = &policy
            && (named.0 != *bytes || includes_files(bytes))
        {
            *named = (bytes.clone(), tollgate_policy::named_files(&self.path, bytes));
        }
        let files = named.1.iter().map(|path| (path.clone(), stamp(path))).collect();
        FileContent { policy, files }
    }

    fn replace(&self, loaded: LoadedPolicy) -> Result<Reloaded, ReloadError> {
        let LoadedPolicy { policy, settings, version, warnings, .. } = loaded;
        if *version == **self.limiter.policy().version() {
            return Ok(Reloaded::Unchanged);
        }
        let keys = fixed::changed(&self.settings, &settings, self.listeners);
        if !keys.is_empty() {
            return Err(ReloadError::NeedsRestart { keys });
        }
        let revision = Revision::new(policy, version);
        let version = Arc::clone(revision.version());
        self.limiter.store().as_ref().follow(&settings.store, &revision, self.refunds);
        (self.on_reload)(&revision);
        self.limiter.replace_policy(revision);
        Ok(Reloaded::Replaced { version, warnings })
    }
}

/// The state of the policy file at one check.
#[derive(Debug, PartialEq, Eq)]
struct FileContent {
    /// The file's bytes, or the error of reading it.
    policy: Result<Vec<u8>, io::ErrorKind>,
    /// The other files that the policy names. These files can be large, so a change of a file's
    /// length or modification time counts as a change of its content.
    files: Vec<(PathBuf, Option<Stamp>)>,
}

/// Returns whether the policy may have an `include`. An included file can change the set of files
/// that must be watched while the policy file itself stays the same.
fn includes_files(bytes: &[u8]) -> bool {
    const KEY: &[u8] = b"include";
    bytes.windows(KEY.len()).any(|part| part == KEY)
}

/// The length of a file and the time of its last modification.
type Stamp = (u64, Option<SystemTime>);

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()))
}

impl<S> fmt::Debug for PolicyFile<S> {
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
