//! Carrying out a deployment, step by step. After each step everything works.

use kelos_storage::StorageError;

use super::prepare::DeploymentPlan;
use super::step::Step;
use super::{DeployError, hdfs};

impl DeploymentPlan {
    /// Carries it out, and reports each step that is done. If nothing has to change, it does nothing.
    ///
    /// # Errors
    /// If the folders of scripts are not writable, and then nothing was changed; or if a step fails, and then
    /// the error lists which steps were done and which were not.
    pub async fn carry_out(&self, mut tell: impl FnMut(&Step) + Send) -> Result<(), DeployError> {
        if self.steps.is_empty() {
            return Ok(());
        }
        self.site.require_writable().await?;
        for (number, step) in self.steps.iter().enumerate() {
            if let Err(cause) = self.take(step).await {
                let words = |steps: &[Step]| steps.iter().map(Step::to_string).collect();
                let (done, left) = self.steps.split_at(number);
                let (done, left) = (words(done), words(left));
                return Err(DeployError::Incomplete { done, step: step.to_string(), cause, left });
            }
            tell(step);
        }
        Ok(())
    }

    async fn take(&self, step: &Step) -> Result<(), StorageError> {
        match step {
            Step::Write { script, text } => script.files.put(&script.path, &mut text.as_bytes()).await,
            Step::Remove { what } => what.files.remove(&what.path).await,
            Step::PutFolder { .. } => self.put_folder().await,
            Step::RemoveFolder { .. } => match &self.folders {
                Some(folders) => folders.remove().await,
                None => Ok(()),
            },
        }
    }

    async fn put_folder(&self) -> Result<(), StorageError> {
        let files = self.bundle.as_ref().and_then(|bundle| bundle.hdfs.as_ref());
        let (Some(folders), Some(files)): (Option<&hdfs::Folders>, _) = (self.folders.as_ref(), files) else {
            return Ok(());
        };
        folders.upload(files).await?;
        folders.swap().await
    }
}
