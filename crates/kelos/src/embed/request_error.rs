//! Requests that were not carried out.

use kelos_engine::AskError;
use kelos_model::SlotRef;
use kelos_store::StoreError;

/// A request that was not carried out. Messages complete "failed to …".
///
/// ```
/// # use kelos::embed::{Context, Project, job};
/// # async fn greet(_: Context, name: String, _: ()) -> Result<String, String> { Ok(format!("hello {name}")) }
/// # let greet = job("greet", greet).with(()).on_demand();
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let running = Project::new("hello", "1.0").add(greet).start().await?;
/// let refused = running.start("no such job", &()).await;
/// assert!(refused.is_err_and(|error| error.to_string().contains("no such job")));
/// # running.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The engine refused it, or did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name is no id.
    #[error("find the job \"{0}\": no job has this id")]
    Job(String),
    /// The input can't be JSON.
    #[error("write the input of {job} as JSON: {source}")]
    Input {
        /// The job.
        job: String,
        /// The reason.
        source: serde_json::Error,
    },
    /// It is a flow, whose runs are started under names.
    #[error("start the job \"{0}\": it is a flow; start it by `running.flow(\"{0}\").start(name, &input)`")]
    IsFlow(String),
    /// The output of a run can't be read.
    #[error("read the output of {slot}: {reason}")]
    Output {
        /// The slot.
        slot: SlotRef,
        /// The reason.
        reason: String,
    },
    /// The name is no id of a flow.
    #[error("find the flow \"{0}\": no flow has this id")]
    Flow(String),
    /// There is no such run.
    #[error("find the run \"{run}\" of {flow}: there is none")]
    Run {
        /// The flow.
        flow: String,
        /// The name of the run.
        run: String,
    },
    /// A text can't name a run or a step.
    #[error("name a run or a step of {flow}: {reason}")]
    Name {
        /// The flow.
        flow: String,
        /// The text.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A signal says something else than the steps that wait for it read.
    #[error("read the signal \"{signal}\": {reason}")]
    Signal {
        /// The signal.
        signal: String,
        /// The reason.
        reason: String,
    },
    /// The project was given no cluster of Kafka of this name.
    #[cfg(feature = "kafka")]
    #[error("find the Kafka cluster \"{0}\": the project was given none of this name")]
    Kafka(String),
    /// A slot that was started is not there any more.
    #[error("find {0}: it ended long ago and was forgotten, or never was")]
    Gone(SlotRef),
    /// The engine ended before the slot did.
    #[error("wait for the end of {0}: the scheduler has ended")]
    Stopped(SlotRef),
}
