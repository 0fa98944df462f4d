//! `kelos move`, between a file and a log, and `kelos recover`, for a node that is ahead of its log.

use std::path::PathBuf;

use kelos::nodes::{self, MoveError, MoveReport};
use kelos_sandbox::Folders;
use kelos_tls::{Trust, TrustSettings};

use crate::data::{self, Place};
use crate::failure::Failure;
use crate::node::SnapshotOption;
use crate::{folder, text};

#[derive(clap::Args)]
pub(crate) struct MoveArgs {
    /// Address of an empty log, to which the data are moved; env:NAME for one in a variable
    #[arg(long, value_name = "URL", required_unless_present = "from", conflicts_with = "from")]
    to: Option<String>,
    /// Address of a log whose data are moved to the folder of --state; no node leads on it any more. env:NAME for one in a variable
    #[arg(long, value_name = "URL", requires = "state")]
    from: Option<String>,
    /// With --from: folder of the state of a node that does not run, or a new one
    #[arg(long, value_name = "DIR", requires = "from", value_hint = clap::ValueHint::DirPath)]
    state: Option<PathBuf>,
    #[command(flatten)]
    snapshots: SnapshotOption,
    #[command(flatten)]
    place: Place,
}

#[derive(clap::Args)]
pub(crate) struct RecoverArgs {
    /// Address of the log
    #[arg(long, value_name = "URL", env = "KELOS_STORE", hide_env_values = true)]
    store: String,
    /// Folder of the state of the node, which does not run
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    state: PathBuf,
    #[command(flatten)]
    snapshots: SnapshotOption,
    /// Put what this node has into the log: nothing is lost. No other node may run meanwhile
    #[arg(long, conflicts_with = "accept_loss")]
    append_tail: bool,
    /// Take the log as it is: what only this node has is lost, and its state is put aside
    #[arg(long)]
    accept_loss: bool,
}

pub(crate) fn move_data(args: &MoveArgs) -> Result<u8, Failure> {
    let place = |address: &str| args.snapshots.of(address, &trust()?);
    if let (Some(from), Some(state)) = (&args.from, &args.state) {
        let from = place(from)?;
        folder::make_private(state).map_err(|error| Failure::bad(format!("make {}: {error}", state.display())))?;
        let moved = nodes::to_file(&from, state).map_err(failure)?;
        said(&moved, &format!("{}", state.display()));
        text::line("no node leads on the log any more; the definitions are in its folder definitions/");
        text::line(format!(
            "go on with `kelos serve --port PORT --db {0} --workflows {0}/definitions/workflows --defaults {0}/definitions/defaults`",
            state.display()
        ));
        return Ok(0);
    }
    let to = place(args.to.as_deref().unwrap_or_default())?;
    let data = data::find(&args.place)?;
    let folder = data.database().parent().map(PathBuf::from).unwrap_or_default();
    let Folders { workflows, defaults } = data.folders(&args.place)?;
    let scripts = (workflows.is_dir() && defaults.is_dir()).then_some(Folders { workflows, defaults });
    let moved = nodes::to_log(&folder, &to, scripts).map_err(failure)?;
    said(&moved, "the log");
    text::line(format!(
        "go on with `kelos serve --port PORT --store URL --state {}`, and other nodes with folders of their own",
        folder.display()
    ));
    Ok(0)
}

fn said(moved: &MoveReport, place: &str) {
    text::line(format!("moved {} events to {place}", moved.events));
    if let Some(turn) = &moved.turn {
        text::line(format!("the last turn is {}, with the digest {}", turn.turn, turn.digest));
    }
}

pub(crate) fn recover(args: &RecoverArgs) -> Result<u8, Failure> {
    let place = args.snapshots.of(&args.store, &trust()?)?;
    let state = folder::existing("state directory", &args.state)?;
    if args.append_tail {
        let done = nodes::append_tail(&place, &state).map_err(failure)?;
        text::line(format!("the log has what this node has, up to entry {}; start the nodes again", done.entry));
        return Ok(0);
    }
    if args.accept_loss {
        let aside = nodes::accept_loss(&state).map_err(failure)?;
        text::line(format!(
            "the state of the node was put aside as {}; it begins with that of the log",
            aside.display()
        ));
        return Ok(0);
    }
    let found = nodes::tail(&place, &state).map_err(failure)?;
    if found.local <= found.log {
        text::line(format!(
            "this node ends with entry {}, and the log with entry {}: it lacks nothing, unless it says so when it starts",
            found.local, found.log
        ));
        return Ok(0);
    }
    text::line(format!("this node ends with entry {}, and the log with entry {}", found.local, found.log));
    for run in &found.live {
        text::line(format!("its command may be at work: {} run {}", run.id.slot, run.id.number));
    }
    text::line(
        "--append-tail puts what this node has into the log, and nothing is lost; --accept-loss takes the log as it is, and commands that \
         were started since then are started again",
    );
    Ok(1)
}

/// The trust in stores that speak TLS, by the environment.
fn trust() -> Result<Trust, Failure> {
    Trust::new(TrustSettings::of_environment()).map_err(Failure::usage)
}

fn failure(error: MoveError) -> Failure {
    match error {
        MoveError::Store(error) => Failure::of_store(&error),
        error => Failure::bad(error.to_string()),
    }
}
