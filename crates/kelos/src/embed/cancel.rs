//! The end of a run from outside, as its function learns of it.

use std::sync::Arc;

use tokio::sync::watch;

/// Says whether a run is to end: somebody killed it, it took too long, or the program stops. Cheap to clone.
///
/// A function that is asked to end has [some seconds](super::Job::grace) for it, and is dropped at its next `await` after that.
///
/// ```
/// # use kelos::embed::Context;
/// async fn copy(context: Context, files: Vec<String>, _: ()) -> Result<usize, String> {
///     let cancel = context.cancel().clone();
///     let copied = files.iter().take_while(|_| !cancel.is_asked()).count();
///     Ok(copied)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Cancel {
    asked: Arc<watch::Sender<bool>>,
}

impl Cancel {
    pub(super) fn new() -> Cancel {
        Cancel { asked: Arc::new(watch::Sender::new(false)) }
    }

    pub(super) fn ask(&self) {
        self.asked.send_replace(true);
    }

    /// Whether the run is to end.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn work(context: Context, _: (), _: ()) -> Result<(), String> {
    ///     for part in 0..100 {
    ///         if context.cancel().is_asked() {
    ///             return Err(format!("ended after part {part}"));
    ///         }
    ///         // Some work.
    ///     }
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits until the run is to end, for `select!`.
    ///
    /// ```
    /// # use kelos::embed::Context;
    /// async fn listen(context: Context, _: (), _: ()) -> Result<(), String> {
    ///     tokio::select! {
    ///         () = context.cancel().asked() => Err("ended".to_owned()),
    ///         () = std::future::pending() => Ok(()),
    ///     }
    /// }
    /// ```
    pub async fn asked(&self) {
        let mut asked = self.asked.subscribe();
        // The sender lives as long as this does.
        let _ = asked.wait_for(|asked| *asked).await;
    }
}
