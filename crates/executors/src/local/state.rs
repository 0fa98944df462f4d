//! The state of a run by its files, and the outcome of a run whose shim is gone.

use std::path::Path;

use super::error::{At, LocalError};
use super::outputs;
use super::paths::make_dir;
use super::procs::{self, ProcessId, Tree};
use super::records::{self, CLAIM, Claim, EXIT, Exit, HARD_KILLED, Outcome};

const SHIM_DIED: &str = "the process that looked after the command died";

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// The run is not claimed, and nothing has run. A shim may still be starting:
    /// [`Launcher::start`](super::Launcher::start) or [`Launcher::cancel`](super::Launcher::cancel) it, but don't treat
    /// it as over.
    NotStarted,
    /// Its shim is alive.
    Running {
        /// See [`ShimRun::external_id`](super::ShimRun::external_id).
        external_id: String,
    },
    /// It has ended, as far as can be known: the outcome may be [`Outcome::Unknown`](super::Outcome::Unknown) or
    /// [`Outcome::Lost`](super::Outcome::Lost).
    Ended(Exit),
}

/// [`Check`] with what the launcher needs to act on it.
pub(crate) enum Look {
    NotStarted,
    Running { shim: ProcessId, external_id: String },
    Ended(Exit),
}

impl Look {
    pub(crate) fn into_check(self) -> Check {
        match self {
            Self::NotStarted => Check::NotStarted,
            Self::Running { external_id, .. } => Check::Running { external_id },
            Self::Ended(exit) => Check::Ended(exit),
        }
    }
}

pub(crate) fn look(dir: &Path) -> Result<Look, LocalError> {
    if let Some(exit) = read_exit(dir)? {
        return Ok(Look::Ended(exit));
    }
    let (claim, command) = match records::read_claim(dir) {
        Ok(Some(claimed)) => claimed,
        Ok(None) => return Ok(Look::NotStarted),
        // It is created whole, so only a damaged disk leads here; there is no known process to watch or to kill.
        Err(LocalError::BadRecord { source, .. }) => {
            return settle(dir, Outcome::Lost { why: format!("the claim of the run is damaged: {source}") });
        }
        Err(error) => return Err(error),
    };
    let Some(shim) = claim.shim else {
        return settle(dir, Outcome::Killed);
    };
    let is_here = procs::host().at("read", Path::new("/proc"))? == claim.host;
    if is_here && shim.is_alive() {
        return Ok(Look::Running { shim, external_id: external_id(command, Some(shim)) });
    }
    // The shim may have written the outcome and ended between the two checks.
    if let Some(exit) = read_exit(dir)? {
        return Ok(Look::Ended(exit));
    }
    if !is_here {
        outputs::discard_of(dir, &claim.tag);
        let why = "the machine or the container was restarted while it ran".to_owned();
        return settle(dir, Outcome::Unknown { why });
    }
    let tree = Tree { tag: claim.tag, shim };
    let tag = tree.tag.clone();
    let outcome = match tree.kill() {
        Ok(()) if dir.join(HARD_KILLED).exists() => Outcome::Killed,
        Ok(()) => Outcome::Unknown { why: SHIM_DIED.to_owned() },
        Err(error) => Outcome::Lost { why: format!("{SHIM_DIED}, and of the processes it left, {error}") },
    };
    outputs::discard_of(dir, &tag);
    settle(dir, outcome)
}

/// Reads the outcome. A damaged one is unknown.
fn read_exit(dir: &Path) -> Result<Option<Exit>, LocalError> {
    match records::read(dir, EXIT) {
        // It is written last, when the processes have ended.
        Err(LocalError::BadRecord { source, .. }) => {
            let outcome = Outcome::Unknown { why: format!("the record of its end is damaged: {source}") };
            Ok(Some(Exit { outcome, started_at_ms: None, ended_at_ms: records::now_ms() }))
        }
        other => other,
    }
}

/// Kills the processes of a shim that hangs. First the mark, so that a process that finds the shim dead knows that the
/// run was killed; then the tree, while the shim is still the ancestor of all of it.
pub(crate) fn kill_below(dir: &Path, shim: ProcessId) -> Result<(), LocalError> {
    records::create_once(dir, HARD_KILLED, &true)?;
    if let Some((Claim { tag, .. }, _)) = records::read_claim(dir)?
        && let Err(error) = (Tree { tag, shim }).kill()
    {
        tracing::warn!(dir = %dir.display(), "of the processes of a cancelled run, {error}");
    }
    Ok(())
}

/// Stores the outcome of a run without a shim, unless another process was first: then that outcome holds.
fn settle(dir: &Path, outcome: Outcome) -> Result<Look, LocalError> {
    let exit = Exit { outcome, started_at_ms: None, ended_at_ms: records::now_ms() };
    records::create_once(dir, EXIT, &exit)?;
    records::sync(dir, EXIT)?;
    Ok(Look::Ended(read_exit(dir)?.unwrap_or(exit)))
}

/// Claims a run without a shim, so that none ever runs it. `false`: a shim was faster.
pub(crate) fn bury(dir: &Path) -> Result<bool, LocalError> {
    make_dir(dir)?;
    let claim = Claim {
        run_id: String::new(),
        tag: String::new(),
        shim: None,
        host: String::new(),
        claimed_at_ms: records::now_ms(),
    };
    let is_ours = records::create_once(dir, CLAIM, &claim)?;
    records::sync(dir, CLAIM)?;
    Ok(is_ours)
}

pub(crate) fn external_id(command: Option<ProcessId>, shim: Option<ProcessId>) -> String {
    command.or(shim).map(|process| process.pid.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kelos_model::retry::scramble;

    use super::super::paths::RunRef;
    use super::super::records::{RunSpec, SPEC, add_command, create_once, replace};
    use super::*;

    fn number(variable: &str, usual: u64) -> u64 {
        std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
    }

    /// Flips bits of files, one at a time; `KELOS_FLIPS` is their number, `KELOS_SEED` the seed. Returns how many of
    /// them `look` noticed, and how many it did not.
    fn flip_bits(dir: &Path, files: &[&str], mut look: impl FnMut(&str) -> bool) -> (u64, u64) {
        let (count, seed) = (number("KELOS_FLIPS", 100), number("KELOS_SEED", 18));
        let mut noticed = 0;
        for number in 0..count {
            let draw = scramble(seed.wrapping_mul(count).wrapping_add(number));
            let path = dir.join(files[(draw % files.len() as u64) as usize]);
            let written = fs::read(&path).unwrap();
            let bit = (scramble(draw) % (written.len() as u64 * 8)) as usize;
            let mut flipped = written.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &flipped).unwrap();
            noticed += u64::from(look(&format!("seed {seed}: bit {bit} of {}", path.display())));
            fs::write(&path, &written).unwrap();
        }
        println!("{count} flipped, {noticed} noticed, {} changed nothing that is read", count - noticed);
        (noticed, count - noticed)
    }

    fn claim(dir: &Path, shim: ProcessId) {
        let host = procs::host().unwrap();
        let claim = Claim {
            run_id: "w@1#2".to_owned(),
            tag: "no such tag".to_owned(),
            shim: Some(shim),
            host,
            claimed_at_ms: 5,
        };
        create_once(dir, CLAIM, &claim).unwrap();
    }

    #[test]
    fn a_bit_of_a_run_that_ended_flips_and_is_noticed_or_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let shim = ProcessId::current().unwrap();
        claim(dir, shim);
        add_command(dir, shim).unwrap();
        replace(dir, SPEC, &RunSpec::new(RunRef::new("w", "2016-01-01T12:00Z", 1), "w@1#2", ["true"])).unwrap();
        let exit = Exit { outcome: Outcome::Exited { code: 3 }, started_at_ms: Some(1), ended_at_ms: 2 };
        create_once(dir, EXIT, &exit).unwrap();
        let (noticed, harmless) = flip_bits(dir, &[CLAIM, SPEC, EXIT], |flip| match look(dir) {
            Ok(Look::Ended(read)) if read == exit => false,
            Ok(Look::Ended(Exit { outcome: Outcome::Unknown { why } | Outcome::Lost { why }, .. }))
                if why.contains("damaged") =>
            {
                true
            }
            Ok(other) => panic!("{flip}: {:?}", other.into_check()),
            Err(error) => panic!("{flip}: {error}"),
        });
        assert!(noticed > 0 && harmless > 0, "only what says how it ended is read");
    }

    #[test]
    fn a_bit_of_a_run_that_goes_on_flips_and_is_noticed_or_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let shim = ProcessId::current().unwrap();
        claim(dir, shim);
        add_command(dir, shim).unwrap();
        let truth = external_id(Some(shim), Some(shim));
        let (noticed, _) = flip_bits(dir, &[CLAIM], |flip| match look(dir) {
            Ok(Look::Running { shim: read, external_id }) if read == shim && external_id == truth => false,
            Ok(Look::Ended(Exit { outcome: Outcome::Lost { why }, .. })) if why.contains("damaged") => {
                fs::remove_file(dir.join(EXIT)).unwrap();
                true
            }
            Ok(other) => panic!("{flip}: {:?}", other.into_check()),
            Err(error) => panic!("{flip}: {error}"),
        });
        assert!(noticed > 0, "no bit of the claim was noticed");
    }
}
