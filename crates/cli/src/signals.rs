//! Signals: those that end a command, and those that a server or a worker outlives.

use std::io::IsTerminal;
use std::sync::Arc;

use kelos::Node;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that end this process.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Whether SIGHUP ends it only with its terminal.
    is_lasting: bool,
    had_terminal: bool,
}

impl Signals {
    /// Those that end a command.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        Ok(Signals {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
            is_lasting: false,
            had_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Those that end a server or a worker: neither SIGHUP, by which others are told to read their files again, nor SIGUSR1 and SIGUSR2.
    pub(crate) fn of_server() -> Result<Signals, Failure> {
        for (name, kind) in [("SIGUSR1", SignalKind::user_defined1()), ("SIGUSR2", SignalKind::user_defined2())] {
            let mut signal = on(kind)?;
            tokio::spawn(async move {
                while signal.recv().await.is_some() {
                    tracing::info!("{name} means nothing here and is ignored");
                }
            });
        }
        Ok(Signals { is_lasting: true, ..Signals::listen()? })
    }

    /// Waits for the next one.
    pub(crate) async fn wait(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => {
                    let has_lost_terminal = self.had_terminal && !std::io::stdin().is_terminal();
                    if !self.is_lasting || has_lost_terminal {
                        return;
                    }
                }
            }
        }
    }
}

fn on(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::bad(format!("listen to signals: {error}")))
}

/// Reloads at each SIGHUP what a server reads while it runs, and logs what needs a restart; `config` says it of the file of `--config`.
pub(crate) fn reload_at_hangup(node: Node, config: impl Fn() -> String + Send + Sync + 'static) -> Result<(), Failure> {
    let config = Arc::new(config);
    let mut hangup = on(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            node.reload().await;
            let asked = config.clone();
            let config = tokio::task::spawn_blocking(move || asked()).await.unwrap_or_default();
            // Whoever has sent it looks for the answer, whatever else is logged.
            tracing::warn!(
                "SIGHUP: scripts and apps were loaded again; certificates and secrets are read whenever they are used; {config}; options \
                 and variables need a restart"
            );
        }
    });
    Ok(())
}

/// Logs at each SIGHUP that a worker reads nothing again.
pub(crate) fn explain_at_hangup() -> Result<(), Failure> {
    let mut hangup = on(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            tracing::warn!(
                "SIGHUP: a worker is given its definitions, and reads secrets whenever they are used; its options, variables and the file \
                 of --config need a restart"
            );
        }
    });
    Ok(())
}
