//! What is scarce: places that runs hold, and rates at which they start or go on, shared by all jobs and by scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use kelos_model::workflow::{PoolUse, TokenRate};
use kelos_model::{IdError, PoolId};

use super::mistakes::Mistake;

/// Something scarce, of which runs take parts: before their start by [`Job::on`](super::Job::on), or while they are live by
/// [`Context::on`](super::Context::on). [`Places`] and [`Rate`] are such, and whatever is made of them: two of `(&places, 2)`, several in a
/// tuple, an array or a list. Implement it for platforms of your own.
///
/// ```
/// use std::time::Duration;
/// use kelos::embed::{Context, Places, Platform, PlatformUse, Project, Rate, job};
///
/// /// A cluster, on which large models take more.
/// struct Cluster {
///     machines: Places,
///     starts: Rate,
/// }
///
/// /// A model that is trained there.
/// struct Training<'c>(&'c Cluster, u32);
///
/// impl Platform for Training<'_> {
///     fn uses(&self) -> Vec<PlatformUse> {
///         ((&self.0.machines, self.1), &self.0.starts).uses()
///     }
/// }
///
/// async fn train(context: Context, model: String, _: ()) -> Result<(), String> {
///     context.log(format!("training {model}"));
///     Ok(())
/// }
///
/// let cluster = Cluster { machines: Places::new("machines", 8), starts: Rate::new("starts", 1, Duration::from_secs(10)) };
/// let train = job("train", train).with(()).on(Training(&cluster, 4)).on_demand();
/// assert!(Project::new("models", "1.0").add(train).check().is_ok());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no platform",
    note = "take `&places`, `(&places, 2)` for two of them, or a tuple or list of platforms; what is scarce in a way of its own implements `Platform`"
)]
pub trait Platform {
    /// The parts that are taken, all at once.
    fn uses(&self) -> Vec<PlatformUse>;
}

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

/// So many programs that [`Context::command`](super::Context::command) runs at the same time, in all runs of the jobs that
/// [may use it](super::Job::may_use). It is a pool of the name `processes`.
///
/// ```
/// use kelos::embed::{CommandError, Context, Processes, Project, job};
///
/// async fn pack(context: Context, folder: String, _: ()) -> Result<(), CommandError> {
///     // Waits while four other programs run.
///     context.command("tar", ["-czf", "all.tar.gz", &folder]).await
/// }
///
/// let pack = job("pack", pack).with(()).may_use(Processes::new(4)).on_demand();
/// assert!(Project::new("archive", "1.0").add(pack).check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processes(Places);

impl Processes {
    /// The name of the pool.
    ///
    /// ```
    /// assert_eq!(kelos::embed::Processes::NAME, "processes");
    /// ```
    pub const NAME: &str = "processes";

    /// A number of programs at a time.
    ///
    /// ```
    /// let four = kelos::embed::Processes::new(4);
    /// ```
    #[must_use]
    pub fn new(programs: u32) -> Processes {
        Processes(Places::new(Self::NAME, programs))
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

    /// Lets at most so many go on at the same time, too: runs that took a token at their start, or permits that were taken within a run.
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

/// A part of something scarce that a run takes.
///
/// ```
/// use kelos::embed::{Places, Platform};
///
/// let gpus = Places::new("gpu", 4);
/// assert_ne!((&gpus).uses(), (&gpus, 2).uses());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformUse {
    name: String,
    size: u32,
    rate: Option<TokenRate>,
    each: u32,
}

impl Platform for Places {
    fn uses(&self) -> Vec<PlatformUse> {
        vec![PlatformUse { name: self.name.clone(), size: self.size, rate: None, each: 1 }]
    }
}

impl Platform for Processes {
    fn uses(&self) -> Vec<PlatformUse> {
        self.0.uses()
    }
}

impl Platform for Rate {
    fn uses(&self) -> Vec<PlatformUse> {
        let size = self.concurrent.unwrap_or(PoolUse::BOUNDLESS);
        vec![PlatformUse { name: self.name.clone(), size, rate: Some(self.rate), each: 1 }]
    }
}

impl Platform for PlatformUse {
    fn uses(&self) -> Vec<PlatformUse> {
        vec![self.clone()]
    }
}

impl<P: Platform + ?Sized> Platform for &P {
    fn uses(&self) -> Vec<PlatformUse> {
        (**self).uses()
    }
}

/// So many of it.
impl<P: Platform> Platform for (P, u32) {
    fn uses(&self) -> Vec<PlatformUse> {
        let more = |one: PlatformUse| PlatformUse { each: one.each.saturating_mul(self.1), ..one };
        self.0.uses().into_iter().map(more).collect()
    }
}

impl<P: Platform, Q: Platform> Platform for (P, Q) {
    fn uses(&self) -> Vec<PlatformUse> {
        [self.0.uses(), self.1.uses()].concat()
    }
}

impl<P: Platform, Q: Platform, R: Platform> Platform for (P, Q, R) {
    fn uses(&self) -> Vec<PlatformUse> {
        [self.0.uses(), self.1.uses(), self.2.uses()].concat()
    }
}

impl<P: Platform, const N: usize> Platform for [P; N] {
    fn uses(&self) -> Vec<PlatformUse> {
        self.iter().flat_map(Platform::uses).collect()
    }
}

impl<P: Platform> Platform for Vec<P> {
    fn uses(&self) -> Vec<PlatformUse> {
        self.iter().flat_map(Platform::uses).collect()
    }
}

impl PlatformUse {
    /// The same, of which only one is taken.
    pub(super) fn single(&self) -> PlatformUse {
        PlatformUse { each: 1, ..self.clone() }
    }

    pub(super) fn pool(&self) -> Result<PoolUse, IdError> {
        Ok(PoolUse { pool: PoolId::new(&self.name)?, size: self.size, permits: self.each, rate: self.rate })
    }
}

/// The permits of pools that are asked for at once.
pub(super) fn permits_of(uses: &[PlatformUse]) -> Result<BTreeMap<PoolId, u32>, IdError> {
    let mut permits: BTreeMap<PoolId, u32> = BTreeMap::new();
    for one in uses {
        let taken = permits.entry(PoolId::new(&one.name)?).or_default();
        *taken = taken.saturating_add(one.each);
    }
    Ok(permits)
}

/// The pools of which runs may take permits while they are live, ascending, each once.
pub(super) fn within(
    uses: &[PlatformUse],
    mistake: &dyn Fn(String) -> Mistake,
    mistakes: &mut Vec<Mistake>,
) -> Vec<PoolUse> {
    // The number that a run takes is known only then; one of each must be possible.
    let mut single: Vec<PlatformUse> = Vec::new();
    for one in uses.iter().map(PlatformUse::single) {
        if !single.contains(&one) {
            single.push(one);
        }
    }
    let mut pools = pools(&single, "a request of a run", mistake, mistakes);
    pools.iter_mut().for_each(|one| one.permits = 1);
    pools
}

/// Pools, ascending, each once.
pub(super) fn pools(
    uses: &[PlatformUse],
    who: &str,
    mistake: &dyn Fn(String) -> Mistake,
    mistakes: &mut Vec<Mistake>,
) -> Vec<PoolUse> {
    let mut pools: Vec<PoolUse> = Vec::new();
    for one in uses {
        match one.pool() {
            Ok(pool) => match pools.iter_mut().find(|other| other.pool == pool.pool) {
                Some(other) => other.permits = other.permits.saturating_add(pool.permits),
                None => pools.push(pool),
            },
            Err(error) => mistakes.push(mistake(format!("the name of what is scarce is refused: {error}"))),
        }
    }
    let flaws = pools.iter().filter_map(PoolUse::flaw);
    mistakes.extend(flaws.map(|words| mistake(format!("{who} {words}"))));
    pools.sort_by(|a, b| a.pool.cmp(&b.pool));
    pools
}
