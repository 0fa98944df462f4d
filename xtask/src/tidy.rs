//! `cargo xtask tidy`: the rules of the project that no compiler checks. It reads, and changes nothing but, on request, the list of
//! known faults.

mod blocks;
mod commits;
mod cycles;
mod doc_comments;
mod docs;
mod doctests;
mod examples;
mod files;
mod functions;
mod glossary;
mod licences;
mod lock;
mod paths;
mod programs;
mod ratchet;
mod rooms;
mod smallest;
mod source;
mod stored;
mod types;
mod variables;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::packages;
use crate::workspace::{metadata, root};

#[derive(clap::Args)]
pub(crate) struct TidyArguments {
    /// Skip rules that need the manifests of all dependencies on this machine: their licences, and the needs of the smallest library.
    #[arg(long)]
    without_licences: bool,
    /// Remove what is fixed from `xtask/ratchet.txt`.
    #[arg(long)]
    tighten: bool,
    /// Print the places of one entry of `xtask/ratchet.txt`, such as "docs crates/core", and check nothing.
    #[arg(long, value_name = "ENTRY", conflicts_with = "tighten")]
    places: Option<String>,
}

/// The files that git tracks, as text.
struct Tree {
    root: PathBuf,
    files: Vec<Text>,
}

struct Text {
    /// Relative to the root, with slashes.
    path: String,
    text: String,
}

impl Text {
    /// The last part of its path.
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Violations of a rule, one line each.
type Faults = Vec<String>;

pub(crate) fn run(arguments: &TidyArguments) -> ExitCode {
    match Tree::read().and_then(|tree| carry_out(&tree, arguments)) {
        Ok(code) => code,
        Err(wrong) => {
            eprintln!("failed to {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(tree: &Tree, arguments: &TidyArguments) -> Result<ExitCode, String> {
    if let Some(entry) = &arguments.places {
        print_places(tree, entry)?;
        return Ok(ExitCode::SUCCESS);
    }
    let faults = if arguments.tighten { tighten(tree)? } else { check(tree, arguments)? };
    for fault in &faults {
        eprintln!("{fault}");
    }
    if faults.is_empty() {
        println!("tidy");
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{} untidy", faults.len());
    Ok(ExitCode::FAILURE)
}

/// Prints the places of an entry of the list, one line each.
fn print_places(tree: &Tree, entry: &str) -> Result<(), String> {
    let (_, places) = standing(tree)
        .remove(entry)
        .ok_or_else(|| format!("find {entry:?}: nothing is against it, or {} does not name it", ratchet::LIST))?;
    places.iter().for_each(|place| println!("{place}"));
    Ok(())
}

fn check(tree: &Tree, arguments: &TidyArguments) -> Result<Faults, String> {
    let lock = lock::read(tree.text("Cargo.lock")?);
    let deny = tree.text("deny.toml")?;
    let manifests = metadata(&tree.root, &["--no-deps"])?;
    let crates = rooms::crates(&manifests);
    let mut faults = rooms::check(tree.text("ARCHITECTURE.md")?, &crates, &lock);
    faults.extend(licences::banned(deny, &lock));
    if !arguments.without_licences {
        let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let all = metadata(&tree.root, &["--locked", "--filter-platform", &platform])?;
        faults.extend(licences::check(deny, &all));
        faults.extend(smallest::check(&tree.root)?);
    }
    faults.extend(packages::check(&manifests));
    faults.extend(files::check(tree));
    faults.extend(docs::check(tree));
    faults.extend(doctests::check(tree));
    faults.extend(examples::check(tree));
    faults.extend(blocks::check(tree).0);
    faults.extend(paths::check(tree));
    faults.extend(programs::check(tree));
    faults.extend(glossary::check(tree)?);
    faults.extend(commits::check(&tree.root));
    faults.extend(stored::check(tree));
    faults.extend(variables::check(tree));
    faults.extend(ratchet::check(tree, &standing(tree))?);
    Ok(faults)
}

/// Violations of rules that may be listed.
fn standing(tree: &Tree) -> ratchet::KnownFaults {
    let mut standing = cycles::standing(tree);
    standing.extend(functions::standing(tree));
    standing.extend(types::standing(tree));
    standing.extend(doc_comments::standing(tree));
    let not_run = blocks::check(tree).1;
    standing.insert("blocks not run".to_owned(), (not_run.len(), not_run));
    standing
}

fn tighten(tree: &Tree) -> Result<Faults, String> {
    let list = ratchet::tightened(tree, &standing(tree))?;
    std::fs::write(tree.root.join(ratchet::LIST), list).map_err(|error| format!("write {}: {error}", ratchet::LIST))?;
    Ok(Faults::new())
}

impl Tree {
    fn read() -> Result<Tree, String> {
        let root = root();
        let paths = tracked(&root).unwrap_or_else(|| walk(&root));
        let read = |path: String| {
            // A file that is not UTF-8 is no text, and a missing one has been deleted but not committed.
            let text = std::fs::read_to_string(root.join(&path)).ok()?;
            Some(Text { path, text })
        };
        Ok(Tree { files: paths.into_iter().filter_map(read).collect(), root })
    }

    fn text(&self, path: &str) -> Result<&str, String> {
        let found = self.files.iter().find(|file| file.path == path);
        found.map(|file| file.text.as_str()).ok_or_else(|| format!("read {path}: git does not know it"))
    }

    fn ending(&self, end: &str) -> impl Iterator<Item = &Text> {
        self.files.iter().filter(move |file| file.path.ends_with(end))
    }
}

/// The files that git tracks; none if this is no clone.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().ok()?;
    let names = String::from_utf8(output.stdout).ok()?;
    let names: Vec<String> = names.split_terminator('\0').map(str::to_owned).collect();
    (output.status.success() && !names.is_empty()).then_some(names)
}

/// All files, for a source tree without git.
fn walk(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            let skipped = [".git", "target", ".kelos"].iter().any(|name| path.ends_with(name));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !skipped => folders.push(path),
                Ok(kind) if kind.is_file() => {
                    found.extend(path.strip_prefix(root).ok().and_then(Path::to_str).map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}
