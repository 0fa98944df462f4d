//! Requests to the store, one after the other or several at a time.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use kelos_storage::{ConditionalObjects, ObjectName, ObjectVersion, StorageError, WriteAnswer};
use kelos_store::log::LogError;
use kelos_store::log::adapter::Action;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::ObjectLog;
use crate::layout::{CHECK, ENDS, Ends, LEASE, Lease, read, text_of};

/// Reads that are asked for at the same time.
const TOGETHER: usize = 16;
/// A version that no object has.
const NO_TAG: &str = "\"00000000000000000000000000000000\"";

pub(crate) struct Session {
    objects: ConditionalObjects,
    runtime: SessionRuntime,
}

/// The runtime of one session.
struct SessionRuntime(Option<Runtime>);

impl SessionRuntime {
    /// Does some work to its end, also for a caller within another runtime, which may not wait for this one by itself.
    fn run<T: Send>(&self, work: impl Future<Output = T> + Send) -> T {
        let Some(runtime) = &self.0 else { unreachable!("it is taken when the session is dropped") };
        if Handle::try_current().is_err() {
            return runtime.block_on(work);
        }
        std::thread::scope(|scope| match scope.spawn(|| runtime.block_on(work)).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl Drop for SessionRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Session {
    /// Opens the folder, verifies that the store keeps conditions, and makes the objects that each log has.
    pub(crate) fn open(place: &ObjectLog) -> Result<Session, LogError> {
        let action = Action::read("open the log");
        let told = |error: StorageError| action.failed(format!("{} can't be used: failed to {error}", place.name));
        let objects = ConditionalObjects::open(&place.name, &place.config.s3, &place.config.trust).map_err(told)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| action.failed(error.to_string()))?;
        let session = Session { objects, runtime: SessionRuntime(Some(runtime)) };
        let keeps_conditions = session.runtime.run(prepare(&session.objects)).map_err(told)?;
        if keeps_conditions {
            return Ok(session);
        }
        let why = "it writes objects although the condition of the write does not hold, so that leaders would overwrite each other";
        Err(action.failed(format!("{} can't be used: {why}", place.name)))
    }

    /// Reads an object; none if there is none.
    pub(crate) fn read(&self, action: Action<'_>, path: &str) -> Result<Option<ObjectVersion>, LogError> {
        self.runtime.run(self.objects.read(path)).map_err(|error| fault(action.asking(), &error))
    }

    /// Reads an object that each log has, and the tag of its version.
    pub(crate) fn content<T: DeserializeOwned>(&self, action: Action<'_>, path: &str) -> Result<(T, String), LogError> {
        let gone = || LogError::Corrupt { place: path.to_owned(), what: "the object is gone".to_owned() };
        let found = self.read(action, path)?.ok_or_else(gone)?;
        Ok((read(path, &found.content)?, found.tag))
    }

    /// Reads objects at the same time, in order, and none after the first one that is missing.
    pub(crate) fn read_all(&self, action: Action<'_>, paths: &[String]) -> Result<Vec<ObjectVersion>, LogError> {
        let reading = stream::iter(paths).map(|path| self.objects.read(path)).buffered(TOGETHER);
        let found = self
            .runtime
            .run(reading.try_take_while(|found| std::future::ready(Ok(found.is_some()))).try_collect::<Vec<_>>());
        Ok(found.map_err(|error| fault(action.asking(), &error))?.into_iter().flatten().collect())
    }

    pub(crate) fn exists(&self, action: Action<'_>, path: &str) -> Result<bool, LogError> {
        self.runtime.run(self.objects.exists(path)).map_err(|error| fault(action.asking(), &error))
    }

    /// The objects of a folder in order, from the one after a name, at most `limit`.
    pub(crate) fn list(
        &self,
        action: Action<'_>,
        folder: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<ObjectName>, LogError> {
        let listed = self.runtime.run(self.objects.list(folder, after, limit));
        listed.map_err(|error| fault(action.asking(), &error))
    }

    /// Writes an object unless there is one; whether it was written.
    pub(crate) fn create(&self, action: Action<'_>, path: &str, content: Bytes) -> Result<bool, LogError> {
        let written = self.runtime.run(self.objects.create(path, content));
        Ok(written.map_err(|error| fault(action, &error))? == WriteAnswer::Done)
    }

    /// Replaces an object in the version of a tag; whether it was replaced.
    pub(crate) fn replace(
        &self,
        action: Action<'_>,
        path: &str,
        content: &impl Serialize,
        tag: &str,
    ) -> Result<bool, LogError> {
        let written = self.runtime.run(self.objects.replace(path, text_of(content), tag));
        Ok(written.map_err(|error| fault(action, &error))? == WriteAnswer::Done)
    }

    pub(crate) fn remove(&self, action: Action<'_>, paths: &[String]) -> Result<(), LogError> {
        self.runtime.run(self.objects.remove(paths)).map_err(|error| fault(action, &error))
    }
}

/// Makes the objects that each log has. Whether the store keeps conditions.
async fn prepare(objects: &ConditionalObjects) -> Result<bool, StorageError> {
    let nothing = Bytes::from_static(b"a store that keeps conditions writes this object once\n");
    objects.create(CHECK, nothing.clone()).await?;
    if objects.create(CHECK, nothing.clone()).await? == WriteAnswer::Done
        || objects.replace(CHECK, nothing, NO_TAG).await? == WriteAnswer::Done
    {
        return Ok(false);
    }
    // Most often they are there, and reading is cheaper.
    if objects.read(LEASE).await?.is_none() {
        objects.create(LEASE, text_of(&Lease::default())).await?;
    }
    if objects.read(ENDS).await?.is_none() {
        objects.create(ENDS, text_of(&Ends::default())).await?;
    }
    Ok(true)
}

fn fault(action: Action<'_>, error: &StorageError) -> LogError {
    let cause = format!("failed to {error}");
    if ConditionalObjects::is_refusal(error) { action.failed(cause) } else { action.lost(cause) }
}
