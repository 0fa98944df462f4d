//! Where a server keeps its data, for commands that work on it while no server does.

use std::path::{Path, PathBuf};

use kelos_door_celos::celos_db::Trouble;
use kelos_sandbox::Folders;

use crate::failure::Failure;
use crate::location::{self, DATABASE, Location, STATE};
use crate::options::{CELOS_DEFAULTS, CELOS_WORKFLOWS};
use crate::{folder, text};

/// The data that a command works on.
#[derive(clap::Args)]
pub(crate) struct Place {
    /// Folder that `kelos up` runs
    #[arg(long, value_name = "PATH", default_value = ".", conflicts_with = "db", value_hint = clap::ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// State database directory of `kelos serve`
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::DirPath)]
    pub(crate) db: Option<PathBuf>,
    /// With --db: workflows directory
    #[arg(long, value_name = "PATH", default_value = CELOS_WORKFLOWS, value_hint = clap::ValueHint::DirPath)]
    pub(crate) workflows: PathBuf,
    /// With --db: defaults directory
    #[arg(long, value_name = "PATH", default_value = CELOS_DEFAULTS, value_hint = clap::ValueHint::DirPath)]
    pub(crate) defaults: PathBuf,
}

/// Troubles that are named before the rest is only counted.
const NAMED: usize = 100;

/// The data of `kelos up` or of `kelos serve`.
pub(crate) struct Data {
    /// The folder of `kelos.db`.
    folder: PathBuf,
    /// The folder of scripts that it belongs to, for `kelos up`.
    dir: Option<PathBuf>,
}

/// Finds the data that was named; it need not be there yet.
pub(crate) fn find(place: &Place) -> Result<Data, Failure> {
    if let Some(db) = &place.db {
        let folder = folder::existing("state database directory", db)?;
        return Ok(Data { folder, dir: None });
    }
    let dir = folder::existing("folder of scripts", &place.dir)?;
    Ok(Data { folder: dir.join(STATE), dir: Some(dir) })
}

impl Data {
    /// The database.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    /// The key that signs checkpoints, unless the settings name another file.
    pub(crate) fn checkpoint_key(&self) -> PathBuf {
        self.folder.join(kelos_checkpoints::KEY)
    }

    /// Makes the folder, where it is `kelos up`'s.
    pub(crate) fn make(&self) -> Result<(), Failure> {
        if self.dir.is_some() { location::make_state(&self.folder) } else { Ok(()) }
    }

    /// The folders of scripts.
    pub(crate) fn folders(&self, place: &Place) -> Result<Folders, Failure> {
        if let Some(dir) = &self.dir {
            return Ok(folder::folders(dir, None));
        }
        let existing = |what, path: &Path, option: &str| {
            folder::existing(what, path).map_err(|failure| failure.hint(format!("name it with --{option}")))
        };
        Ok(Folders {
            workflows: existing("workflows directory", &place.workflows, "workflows")?,
            defaults: existing("defaults directory", &place.defaults, "defaults")?,
        })
    }

    /// A server works on it.
    pub(crate) fn in_use(&self, doing: &str) -> Failure {
        let failure = Failure::bad(format!("{doing}: a server uses {}", self.database().display()));
        match Location::read(&self.folder) {
            Some(location) => failure.hint(format!("stop it first; it answers at {}", location.address)),
            None => failure.hint("stop it first"),
        }
    }
}

/// Says what is wrong with which files.
pub(crate) fn tell(troubles: &[Trouble]) {
    for trouble in troubles.iter().take(NAMED) {
        text::line(format!("{}: {}", trouble.path, trouble.why));
    }
    if troubles.len() > NAMED {
        text::line(format!("and {} more; --json names them all", troubles.len() - NAMED));
    }
}
