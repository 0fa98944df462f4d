//! The outside as scripts can reach it: registers, checks of paths, the clock.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kelos_model::references::MissingConsent;
use serde_json::Value;

use crate::apps::{AppFormat, AppsSource, Format};
use crate::code::ProblemCode;

/// The JSON values that people and jobs leave for scripts, in buckets. Each question names the project of the script that asks.
pub trait Registers: Send + Sync {
    /// One value, or none where there is none.
    ///
    /// # Errors
    /// When the registers can't be read, or the bucket belongs to a project that does not share it.
    fn get(&self, project: &str, bucket: &str, key: &str) -> Result<Option<Value>, RegisterError>;

    /// All values of a bucket, by key.
    ///
    /// # Errors
    /// When the registers can't be read, or the bucket belongs to a project that does not share it.
    fn all(&self, project: &str, bucket: &str) -> Result<Vec<(String, Value)>, RegisterError>;
}

/// An error of a script that reads a register.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The store can't be read, in words.
    #[error("{0}")]
    Unreadable(String),
    /// The bucket belongs to Kelos itself.
    #[error("the bucket {0:?} belongs to Kelos itself, and scripts can't read it")]
    Reserved(String),
    /// The bucket belongs to another project, which does not share it.
    #[error("{0}; that project can allow it by {line}", line = .0.line())]
    NotShared(Box<MissingConsent>),
}

impl RegisterError {
    /// The code of the problem that it is.
    pub(crate) fn code(&self) -> ProblemCode {
        match self {
            RegisterError::Unreadable(_) | RegisterError::Reserved(_) => ProblemCode::RegisterUnreadable,
            RegisterError::NotShared(_) => ProblemCode::NotShared,
        }
    }
}

/// Registers without a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoRegisters;

impl Registers for NoRegisters {
    fn get(&self, _project: &str, _bucket: &str, _key: &str) -> Result<Option<Value>, RegisterError> {
        Ok(None)
    }

    fn all(&self, _project: &str, _bucket: &str) -> Result<Vec<(String, Value)>, RegisterError> {
        Ok(Vec::new())
    }
}

/// Checks whether something exists at a URI, now.
type Look = Arc<dyn Fn(&str) -> Result<bool, String> + Send + Sync>;
type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The names that scripts use for outside resources while they are tested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// The prefix of paths that `celos.hdfsPath` returns: the folder of a test with real commands. Empty otherwise.
    pub prefix: String,
    /// The suffix of names that `celos.databaseName` returns. Empty where nothing real is touched.
    pub suffix: String,
}

/// Everything of the outside that scripts can reach. There is nothing else.
#[derive(Clone)]
pub struct Host {
    pub(crate) registers: Arc<dyn Registers>,
    pub(crate) look: Look,
    pub(crate) clock: Clock,
    /// The names of outside resources in a test; none outside of tests.
    pub(crate) sandbox: Option<Sandbox>,
    /// Whether nothing is to be asked: scripts are only checked.
    pub(crate) dry: bool,
    /// The format of apps, for those in scripts and those beside them.
    pub(crate) format: Format,
    /// The source of the apps beside the scripts.
    pub(crate) apps: Option<AppsSource>,
}

impl Host {
    /// The registers, and what answers `celos.hdfsCheck`: whether something is at a URI.
    pub fn new(
        registers: Arc<dyn Registers>,
        look: impl Fn(&str) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Host {
        Host {
            registers,
            look: Arc::new(look),
            clock: Arc::new(Timestamp::now),
            sandbox: None,
            dry: false,
            format: None,
            apps: None,
        }
    }

    /// Reads the time from `clock` instead of the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Host {
        self.clock = Arc::new(clock);
        self
    }

    /// Makes scripts run as tests, with these names of outside resources.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Host {
        self.sandbox = Some(sandbox);
        self
    }

    /// Reads apps by a format; without one scripts can't describe any.
    #[must_use]
    pub fn with_format(mut self, format: Arc<dyn AppFormat>) -> Host {
        self.format = Some(format);
        self
    }

    /// Loads apps that are described elsewhere together with the scripts; they need a format.
    #[must_use]
    pub fn with_apps(mut self, apps: Option<AppsSource>) -> Host {
        self.apps = apps;
        self
    }

    /// A host that answers nothing, for checking scripts: no register has a value, no path is there,
    /// and each question becomes a warning.
    #[must_use]
    pub fn dry() -> Host {
        Host { dry: true, ..Host::new(Arc::new(NoRegisters), |_| Ok(false)) }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("dry", &self.dry).finish_non_exhaustive()
    }
}
