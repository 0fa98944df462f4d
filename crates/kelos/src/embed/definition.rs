//! The elements of a project: jobs and flows.

use super::draft::JobDraft;
use super::flow_definition::Flow;
use super::job::Job;

/// An element of a project: a [`Job`] or a [`Flow`].
///
/// ```
/// # use kelos::embed::{Context, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{Definition, Part, Project, flow};
///
/// let all: Vec<Definition> = vec![job("work", work).with(()).once().into(), flow("none", Part::default()).into()];
/// let project = all.into_iter().fold(Project::new("shop", "1.0"), Project::add);
/// assert_eq!(project.check()?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Definition(JobDraft);

impl std::fmt::Debug for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Definition").field(&self.0.id).finish()
    }
}

/// An element of a project, which can be made a definition: a job or a flow.
///
/// ```
/// # use kelos::embed::{Context, job};
/// # async fn work(_: Context, _: (), _: ()) -> Result<(), String> { Ok(()) }
/// use kelos::embed::{IntoDefinition, Project};
///
/// fn shop(work: impl IntoDefinition) -> Project {
///     Project::new("shop", "1.0").add(work)
/// }
///
/// assert_eq!(shop(job("work", work).with(()).once()).check()?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no job and no flow",
    note = "a function becomes a job with its state: `job(\"name\", function).with(())`; a step becomes a flow by `flow(\"name\", step)`"
)]
pub trait IntoDefinition {
    /// The definition.
    fn into_definition(self) -> Definition;
}

impl Definition {
    /// The draft that it was made of.
    pub(super) fn into_draft(self) -> JobDraft {
        self.0
    }
}

impl IntoDefinition for Definition {
    fn into_definition(self) -> Definition {
        self
    }
}

impl<I> IntoDefinition for Job<I> {
    fn into_definition(self) -> Definition {
        self.into()
    }
}

impl IntoDefinition for Flow {
    fn into_definition(self) -> Definition {
        self.into()
    }
}

impl<I> From<Job<I>> for Definition {
    fn from(job: Job<I>) -> Definition {
        Definition(job.draft)
    }
}

impl From<Flow> for Definition {
    fn from(flow: Flow) -> Definition {
        Definition(flow.draft)
    }
}
