//! What is scarce: places that runs hold, and rates at which they start, shared by all jobs and by scripts.

use std::time::Duration;

use kelos_model::workflow::{PoolUse, TokenRate};
use kelos_model::{IdError, PoolId};

/// So many places that runs hold while they are live, such as the slots of a cluster. It is a pool: scripts use it by its name.
///
/// ```
/// use kelos::embed::{Context, Places, Project, job};
///
/// async fn train(_: Context, model: String, _: ()) -> Result<(), String> {
///     println!("training {model}");
///     Ok(())
/// }
///
/// let gpus = Places::new("gpu", 4);
/// let train = job("train", train).with(()).on((&gpus, 2)).on_demand();
/// assert!(Project::new("models", "1.0").add(train).check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    name: String,
    size: u32,
}

impl Places {
    /// A number of places under a name.
    ///
    /// ```
    /// let gpus = kelos::embed::Places::new("gpu", 4);
    /// ```
    #[must_use]
    pub fn new(name: &str, size: u32) -> Places {
        Places { name: name.to_owned(), size }
    }
}

/// So many tokens in a time, which come at an even pace, such as the calls that a service allows. Who takes a token spends it. It is a pool:
/// scripts use it by its name, with `celos.rate`.
///
/// ```
/// use std::time::Duration;
/// use kelos::embed::{Context, Project, Rate, job};
///
/// async fn sync(_: Context, customer: String, _: ()) -> Result<(), String> {
///     println!("asking for {customer}");
///     Ok(())
/// }
///
/// let crm = Rate::new("crm-api", 60, Duration::from_secs(60)).burst(10).concurrent(4);
/// let sync = job("sync", sync).with(()).on(&crm).on_demand();
/// assert!(Project::new("customers", "1.0").add(sync).check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rate {
    name: String,
    rate: TokenRate,
    concurrent: Option<u32>,
}

impl Rate {
    /// A number of tokens in a time, under a name. One token adds up while nobody takes it.
    ///
    /// ```
    /// let crm = kelos::embed::Rate::new("crm-api", 60, std::time::Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn new(name: &str, tokens: u32, time: Duration) -> Rate {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Rate { name: name.to_owned(), rate: TokenRate { tokens, millis, burst: 1 }, concurrent: None }
    }

    /// Lets so many tokens add up while nobody takes them, so that as many may go at once.
    ///
    /// ```
    /// let crm = kelos::embed::Rate::new("crm-api", 60, std::time::Duration::from_secs(60)).burst(10);
    /// ```
    #[must_use]
    pub fn burst(mut self, tokens: u32) -> Rate {
        self.rate.burst = tokens;
        self
    }

    /// Lets at most so many run at the same time, too.
    ///
    /// ```
    /// let crm = kelos::embed::Rate::new("crm-api", 60, std::time::Duration::from_secs(60)).concurrent(4);
    /// ```
    #[must_use]
    pub fn concurrent(mut self, runs: u32) -> Rate {
        self.concurrent = Some(runs);
        self
    }
}

/// A part of something scarce that a run takes: one of `&places` or `&rate`, two of `(&places, 2)`.
///
/// ```
/// use kelos::embed::{Places, PlatformUse};
///
/// let gpus = Places::new("gpu", 4);
/// let (one, two): (PlatformUse, PlatformUse) = ((&gpus).into(), (&gpus, 2).into());
/// assert_ne!(one, two);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformUse {
    name: String,
    size: u32,
    rate: Option<TokenRate>,
    each: u32,
}

impl From<(&Places, u32)> for PlatformUse {
    fn from((places, each): (&Places, u32)) -> Self {
        PlatformUse { name: places.name.clone(), size: places.size, rate: None, each }
    }
}

impl From<&Places> for PlatformUse {
    fn from(places: &Places) -> Self {
        (places, 1).into()
    }
}

impl From<(&Rate, u32)> for PlatformUse {
    fn from((rate, each): (&Rate, u32)) -> Self {
        let size = rate.concurrent.unwrap_or(PoolUse::BOUNDLESS);
        PlatformUse { name: rate.name.clone(), size, rate: Some(rate.rate), each }
    }
}

impl From<&Rate> for PlatformUse {
    fn from(rate: &Rate) -> Self {
        (rate, 1).into()
    }
}

impl PlatformUse {
    pub(super) fn pool(&self) -> Result<PoolUse, IdError> {
        Ok(PoolUse { pool: PoolId::new(&self.name)?, size: self.size, permits: self.each, rate: self.rate })
    }
}
