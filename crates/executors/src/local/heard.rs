//! The messages of shims to the launcher that had them forked.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use super::records::Exit;
use super::shim::{SAY_CLAIMED, SAY_ENDED, SAY_FAILED, SAY_STARTED, SAY_TAKEN};

/// The first word of a shim.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FirstWord {
    /// The run is its own.
    Claimed,
    /// Another shim holds the claim.
    Taken,
    /// There is no claim and no command, for this reason.
    Failed(String),
    /// It ended without a word, or was never forked.
    Silence,
}

/// One end of the pipe by which a shim speaks; the shim has the other.
#[derive(Debug)]
pub(crate) struct Voice {
    lines: Lines<BufReader<Receiver>>,
    exit: Option<Exit>,
}

impl Voice {
    pub(crate) fn new(pipe: Receiver) -> Self {
        Self { lines: BufReader::with_capacity(256, pipe).lines(), exit: None }
    }

    /// The first word; may be asked for again when it was not waited for to the end.
    pub(crate) async fn first(&mut self) -> FirstWord {
        match self.line().await.as_deref() {
            Some(SAY_CLAIMED) => FirstWord::Claimed,
            Some(SAY_TAKEN) => FirstWord::Taken,
            Some(line) => match line.strip_prefix(SAY_FAILED) {
                Some(why) => FirstWord::Failed(why.trim().to_owned()),
                None => FirstWord::Silence,
            },
            None => FirstWord::Silence,
        }
    }

    /// The process id of the command, once the run is claimed; none when there is no command.
    pub(crate) async fn started(&mut self) -> Option<String> {
        let line = self.line().await?;
        if let Some(pid) = line.strip_prefix(SAY_STARTED) {
            return Some(pid.trim().to_owned());
        }
        self.exit = ended(&line);
        None
    }

    /// The outcome of the run; none if the shim ended without sending it.
    async fn exit(mut self) -> Option<Exit> {
        while self.exit.is_none() {
            self.exit = ended(&self.line().await?);
        }
        self.exit
    }

    async fn line(&mut self) -> Option<String> {
        self.lines.next_line().await.ok().flatten()
    }
}

fn ended(line: &str) -> Option<Exit> {
    serde_json::from_str(line.strip_prefix(SAY_ENDED)?).ok()
}

/// The shims that are listened to, by the folders of their runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Voices {
    all: Arc<Mutex<HashMap<PathBuf, watch::Receiver<Option<Exit>>>>>,
}

impl Voices {
    /// Listens to a shim until it has ended, or the runtime has.
    pub(crate) fn keep(&self, dir: PathBuf, voice: Voice) {
        let (tell, told) = watch::channel(None);
        self.lock().insert(dir.clone(), told.clone());
        let kept = VoiceGuard { voices: self.clone(), dir, told };
        tokio::spawn(async move {
            let exit = voice.exit().await;
            let _ = tell.send(exit);
            drop(kept);
        });
    }

    /// Waits for the message that a run has ended. None if there will be no message: then its folder has to be read.
    pub(crate) async fn ended(&self, dir: &Path) -> Option<Exit> {
        let mut told = self.lock().get(dir)?.clone();
        let exit = told.wait_for(Option::is_some).await.ok()?;
        exit.clone()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, watch::Receiver<Option<Exit>>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a voice when it is no longer listened to, for whatever reason.
struct VoiceGuard {
    voices: Voices,
    dir: PathBuf,
    told: watch::Receiver<Option<Exit>>,
}

impl Drop for VoiceGuard {
    fn drop(&mut self) {
        let mut all = self.voices.lock();
        // A run of the same name may have been started since.
        if all.get(&self.dir).is_some_and(|told| told.same_channel(&self.told)) {
            all.remove(&self.dir);
        }
    }
}
