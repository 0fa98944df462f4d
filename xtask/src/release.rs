//! `cargo xtask release`: sets the version and closes the changelog's section. `cargo xtask dist` makes what people install.
//!
//! It commits, tags and publishes nothing: that is left to people, and it prints how.

mod changelog;

use std::process::ExitCode;

use jiff::Zoned;

use crate::packages;
use crate::workspace::{Outcome, read, root};

#[derive(clap::Args)]
pub(crate) struct ReleaseArguments {
    /// The version, such as 0.2.0.
    version: String,
    /// The day of the release; today where it isn't given.
    #[arg(long, value_name = "YYYY-MM-DD")]
    date: Option<jiff::civil::Date>,
    /// Say what would be done, and write nothing.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &ReleaseArguments) -> ExitCode {
    match release(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("failed to {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn release(arguments: &ReleaseArguments) -> Outcome<()> {
    let root = root();
    let version = arguments.version.as_str();
    let manifest = read(&root, "Cargo.toml")?;
    let before =
        packages::version(&manifest).ok_or("find the version in Cargo.toml: expected it in [workspace.package]")?;
    if numbers(version)? < numbers(&before)? {
        return Err(format!("release {version}: {before} came before it"));
    }
    let date = arguments.date.unwrap_or_else(|| Zoned::now().date());
    let files = [
        ("Cargo.toml", packages::with_version(&manifest, version)),
        ("Cargo.lock", packages::locked_with_version(&read(&root, "Cargo.lock")?, version)),
        ("CHANGELOG.md", changelog::closed(&read(&root, "CHANGELOG.md")?, version, &date.to_string())?),
    ];
    for (name, text) in &files {
        if read(&root, name)? == *text {
            println!("{name}: nothing to change");
        } else if arguments.dry_run {
            println!("{name}: would be changed");
        } else {
            std::fs::write(root.join(name), text).map_err(|error| format!("write {name}: {error}"))?;
            println!("{name}: changed");
        }
    }
    if !arguments.dry_run {
        println!("look at it, then: git commit -am \"release: {version}\" && git tag v{version} && cargo xtask dist");
    }
    Ok(())
}

/// The version as three numbers.
fn numbers(version: &str) -> Outcome<[u64; 3]> {
    let numbers: Option<Vec<u64>> = version.split('.').map(|number| number.parse().ok()).collect();
    let numbers = numbers.and_then(|numbers| <[u64; 3]>::try_from(numbers).ok());
    numbers.ok_or_else(|| format!("read the version {version}: expected three numbers, such as 0.2.0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        assert!(numbers("0.2.0").unwrap() > numbers("0.1.10").unwrap());
        assert!(numbers("0.2").is_err() && numbers("v0.2.0").is_err() && numbers("0.2.0.1").is_err());
    }
}
