//! `kelos move`, between a file and a log, and `kelos recover`, for a node that is ahead of its log.

use std::path::{Path, PathBuf};

use kelos::nodes::{self, MoveError, MoveReport, Tail, TurnsOf};
use kelos_sandbox::Folders;
use kelos_tls::{Trust, TrustSettings};
use kelos_wire::EventDto;

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
    /// Put what this node has into the log. No other node may run meanwhile. Refused where the log went on without it
    #[arg(long, conflicts_with = "accept_loss")]
    append_tail: bool,
    /// With --append-tail: drop what the log has instead from this entry on, as the report names it
    #[arg(long, value_name = "N", requires = "append_tail")]
    discard_log_from: Option<u64>,
    /// Write what only the node has, and what only the log has, to node-tail.json and log-tail.json in this folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    export: Option<PathBuf>,
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
        said_files(&moved);
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
    let scripts = Some(scripts(&args.place, &data)?);
    let moved = nodes::to_log(&folder, &to, scripts).map_err(failure)?;
    said(&moved, "the log");
    said_files(&moved);
    text::line(format!(
        "go on with `kelos serve --port PORT --store URL --state {}`, and other nodes with folders of their own",
        folder.display()
    ));
    Ok(0)
}

/// The folders of scripts. Defaults are a matter of each folder: there need be none.
fn scripts(place: &Place, data: &data::Data) -> Result<Folders, Failure> {
    if place.db.is_none() {
        return data.folders(place);
    }
    let workflows = folder::existing("workflows directory", &place.workflows)
        .map_err(|failure| failure.hint("name it with --workflows: the scripts are moved, too"))?;
    Ok(Folders { workflows, defaults: place.defaults.clone() })
}

/// Lists the files that were moved, and those that were not.
fn said_files(moved: &MoveReport) {
    match moved.files.len() {
        0 => text::line("no files of definitions were moved: there are none"),
        count => text::line(format!("moved {count} files of definitions: {}", moved.files.join(", "))),
    }
    if !moved.left.is_empty() {
        text::line(format!("left where they are, as they are no text: {}", moved.left.join(", ")));
    }
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
    if let Some(export) = &args.export {
        write_tails(&nodes::tail(&place, &state).map_err(failure)?, export)?;
    }
    if args.append_tail {
        let done = nodes::append_tail(&place, &state, args.discard_log_from).map_err(failure)?;
        text::line(format!("the log has what this node has, up to entry {}; start the nodes again", done.entry));
        if args.discard_log_from.is_some() {
            text::line(
                "a node that has followed what was dropped refuses to start: `kelos recover --accept-loss` puts its state aside",
            );
        }
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
    report(&found).into_iter().for_each(text::line);
    Ok(u8::from(found.own.turns > 0 || found.foreign_from.is_some() || found.local > found.log))
}

/// The difference between a node and its log, and what can be done.
fn report(found: &Tail) -> Vec<String> {
    let mut lines = vec![format!("this node ends with entry {}, and the log with entry {}", found.local, found.log)];
    if found.own.turns == 0 && found.foreign_from.is_none() && found.local <= found.log {
        lines.push("it lacks nothing, unless it says so when it starts".to_owned());
        return lines;
    }
    let Some(from) = found.foreign_from else {
        lines.push(format!("the log lacks {}", turns(&found.own)));
        lines.extend(live(found));
        lines.push(
            "--append-tail puts what this node has into the log, and nothing is lost; --accept-loss takes the log as it is, and commands \
             that were started since then are started again"
                .to_owned(),
        );
        return lines;
    };
    lines.push(format!("the log went on without this node, from entry {from}: it has {}", turns(&found.foreign)));
    lines.push(format!("only this node has {}", turns(&found.own)));
    lines.extend(live(found));
    lines.push(format!(
        "--append-tail --discard-log-from {from} takes what this node has, and loses {} of the log; --accept-loss takes the log, and loses \
         {} of this node; --export DIR writes both to files first",
        count(found.foreign.turns),
        count(found.own.turns)
    ));
    lines
}

fn live(found: &Tail) -> Vec<String> {
    let line = |run: &kelos_model::Run| format!("its command may be at work: {} run {}", run.id.slot, run.id.number);
    found.live.iter().map(line).collect()
}

fn count(turns: u64) -> String {
    if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") }
}

/// How many turns, by whom, and of what time.
fn turns(of: &TurnsOf) -> String {
    let Some((first, last)) = of.times else { return "no turn".to_owned() };
    let (count, by, events) = (count(of.turns), of.by.join(", "), of.events.len());
    format!("{count} of {by} with {events} events, from {first} to {last}")
}

/// Writes what only one side has to files.
fn write_tails(found: &Tail, folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure::bad(format!("make {}: {error}", folder.display())))?;
    for (name, of) in [("node-tail.json", &found.own), ("log-tail.json", &found.foreign)] {
        let path = folder.join(name);
        let events: Vec<EventDto> = of.events.iter().cloned().map(EventDto::from).collect();
        let told = serde_json::json!({ "turns": of.turns, "by": of.by, "events": events });
        let written = std::fs::write(&path, format!("{told:#}\n"));
        written.map_err(|error| Failure::bad(format!("write {}: {error}", path.display())))?;
        text::line(format!("{} has {}", path.display(), turns(of)));
    }
    Ok(())
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
