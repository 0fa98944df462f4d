//! The installation that is looked at: its folders, its server and its log, as the command line and the files beside them say.

use std::path::{Path, PathBuf};

use kelos::nodes::LogPlace;
use kelos_sandbox::Folders;
use kelos_tls::{Trust, TrustSettings};

use crate::client::Client;
use crate::failure::Failure;
use crate::folder;
use crate::location::{Location, PORT, STATE};
use crate::node::SnapshotOption;
use crate::options::{CELOS_DEFAULTS, CELOS_WORKFLOWS, Door};

/// The options that name an installation.
#[derive(clap::Args)]
pub(crate) struct InstallationOptions {
    /// Folder that `kelos up` runs [default: the current one, or the nearest above it that has a state]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["db", "state"], value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,
    /// State database directory of `kelos serve`
    #[arg(long, value_name = "DIR", conflicts_with = "state", value_hint = clap::ValueHint::DirPath)]
    db: Option<PathBuf>,
    /// With --db: workflows directory
    #[arg(long, value_name = "DIR", default_value = CELOS_WORKFLOWS, value_hint = clap::ValueHint::DirPath)]
    workflows: PathBuf,
    /// With --db: defaults directory
    #[arg(long, value_name = "DIR", default_value = CELOS_DEFAULTS, value_hint = clap::ValueHint::DirPath)]
    defaults: PathBuf,
    /// State folder of a node, as for `kelos serve --store`
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    state: Option<PathBuf>,
    /// Address of the log that nodes share: it is asked, too
    #[arg(long, value_name = "URL", env = "KELOS_STORE", hide_env_values = true)]
    store: Option<String>,
    /// JSON file of the server's `--config`: it is checked with the scripts
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Logs directory of the server, for the bundle [default: /var/log/celos with --db, if it exists]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    logs: Option<PathBuf>,
}

/// An installation.
pub(super) struct Installation {
    /// The folder of state; none where only a server is named.
    pub(super) state: Option<PathBuf>,
    /// The folders of scripts, and the one that has `tasks.json`.
    pub(super) scripts: Option<(Folders, PathBuf)>,
    pub(super) config: Option<PathBuf>,
    pub(super) logs: Option<PathBuf>,
    /// The log that nodes share.
    pub(super) log: Option<LogPlace>,
    /// The server; none where it is not known which one serves the folder.
    pub(super) server: Option<Client>,
    /// The way to start a server, in words.
    pub(super) start: String,
    /// The file with the token that is shown to the server.
    pub(super) token_file: Option<PathBuf>,
}

impl InstallationOptions {
    /// Finds what was named.
    pub(super) fn find(&self, door: &Door) -> Result<Installation, Failure> {
        let named = door.server.as_deref().filter(|server| !server.is_empty());
        let place = self.place(named.is_some())?;
        let server = match (named, &place.state) {
            (Some(server), _) => Some(Client::at(server, &door.trust)?),
            (None, Some(state)) => {
                Location::read(state).map(|location| Client::of(&location, &door.trust)).transpose()?
            }
            (None, None) => Some(Client::at(&format!("http://127.0.0.1:{PORT}"), &door.trust)?),
        };
        let log = self.store.as_ref().map(|address| {
            let trust = Trust::new(TrustSettings::of_environment()).map_err(Failure::usage)?;
            SnapshotOption::default().of(address, &trust)
        });
        let logs = self.logs.clone().or_else(|| {
            let usual = PathBuf::from(crate::serve::USUAL_LOGS);
            Some(usual).filter(|usual| self.db.is_some() && usual.is_dir())
        });
        Ok(Installation {
            state: place.state,
            scripts: place.scripts,
            config: self.config.clone(),
            logs,
            log: log.transpose()?,
            server,
            start: place.start,
            token_file: door.trust.token.token_file.clone(),
        })
    }

    fn place(&self, is_server_named: bool) -> Result<Place, Failure> {
        if let Some(db) = &self.db {
            let state = folder::existing("state database directory", db)?;
            let folders = Folders { workflows: self.workflows.clone(), defaults: self.defaults.clone() };
            let start = format!("start one: kelos serve --port {PORT} --db {}", db.display());
            return Ok(Place { state: Some(state), scripts: Some((folders, self.workflows.clone())), start });
        }
        if let Some(state) = &self.state {
            let shown = state.display();
            let start = format!("start it: kelos serve --port {PORT} --store URL --state {shown}");
            return Ok(Place { state: Some(folder::existing("state directory", state)?), scripts: None, start });
        }
        let dir = match &self.dir {
            Some(dir) => Some(folder::existing("folder of scripts", dir)?),
            // A server that is named may be that of another folder.
            None if is_server_named => None,
            None => nearest(),
        };
        let Some(dir) = dir else { return Ok(Place { state: None, scripts: None, start: String::new() }) };
        let start = format!("start one: kelos up {}", crate::text::quoted(&dir.display().to_string()));
        Ok(Place { state: Some(dir.join(STATE)), scripts: Some((folder::folders(&dir, None), dir)), start })
    }
}

struct Place {
    state: Option<PathBuf>,
    scripts: Option<(Folders, PathBuf)>,
    start: String,
}

/// The current folder or the nearest above it that has a state, else the current one if it has scripts.
fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let with_state = here.ancestors().find(|dir| dir.join(STATE).is_dir()).map(Path::to_owned);
    with_state.or_else(|| {
        Some(here).filter(|here| folder::scripts(&folder::folders(here, None)).is_ok_and(|scripts| scripts > 0))
    })
}
