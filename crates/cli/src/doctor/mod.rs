//! `kelos doctor`: what can be wrong with an installation, what was found, and what to do about it.
//!
//! `readings` looks at the machine, the files and the server; `checks` judges what it found, and reads nothing; `bundle` writes what may be sent to
//! somebody else.

mod bundle;
mod checks;
mod diagnosis;
mod installation;
mod readings;

use serde_json::json;

use crate::failure::{BAD, Failure};
use crate::options::Door;
use crate::text;

use bundle::BundleOptions;
use installation::InstallationOptions;
use readings::Readings;

#[derive(clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    installation: InstallationOptions,
    #[command(flatten)]
    bundle: BundleOptions,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    args.bundle.check()?;
    let installation = args.installation.find(&args.door)?;
    let readings = Readings::take(&installation);
    let found = readings.judge();
    let written = args.bundle.write(&installation, &readings)?;
    let is_well = diagnosis::is_well(&found);
    if args.door.form.json {
        text::json(&json!({ "ok": is_well, "version": env!("CARGO_PKG_VERSION"), "checks": found }));
    } else {
        diagnosis::print(&found);
        written.iter().for_each(text::line);
    }
    Ok(if is_well { 0 } else { BAD })
}
