//! What is scarce: places that runs hold, shared by all jobs and by scripts.

use kelos_model::workflow::PoolUse;
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
    #[must_use]
    pub fn new(name: &str, size: u32) -> Places {
        Places { name: name.to_owned(), size }
    }
}

/// How many places each run of a job holds: one of `&places`, two of `(&places, 2)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacesUse {
    places: Places,
    each: u32,
}

impl From<&Places> for PlacesUse {
    fn from(places: &Places) -> Self {
        PlacesUse { places: places.clone(), each: 1 }
    }
}

impl From<(&Places, u32)> for PlacesUse {
    fn from((places, each): (&Places, u32)) -> Self {
        PlacesUse { places: places.clone(), each }
    }
}

impl PlacesUse {
    pub(super) fn pool(&self) -> Result<PoolUse, IdError> {
        Ok(PoolUse { pool: PoolId::new(&self.places.name)?, size: self.places.size, permits: self.each })
    }

    /// The sentence about runs that never get what they need.
    pub(super) fn lack(&self) -> Option<String> {
        let Places { name, size } = &self.places;
        let each = self.each;
        (each > *size).then(|| format!("each run takes {each} places of \"{name}\", which has {size}"))
    }
}
