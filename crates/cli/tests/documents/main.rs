//! The commands of the documents do what the documents say.
//!
//! Each block of commands in a Markdown file has a mark above it, which CONTRIBUTING.md explains; `cargo xtask tidy` looks
//! that none lacks one. Those marked `run` are run here, document by document, in a copy of the samples.

mod desk;
mod marks;
mod real;
mod transcript;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use desk::Desk;
use marks::{Block, Mark, Run};

/// Documents that are gone through at a time.
const AT_A_TIME: usize = 3;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All Markdown files, relative to the root.
fn documents() -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).expect("a folder").map(|entry| entry.expect("an entry")) {
            let name = entry.file_name().into_string().expect("a name");
            let path = folder.join(&name);
            if entry.file_type().expect("a type").is_dir() {
                if !name.starts_with('.') && !["target", "node_modules", "data"].contains(&&*name) {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                all.push(path.to_str().expect("text").to_owned());
            }
        }
    }
    // Those of the samples take longest: they begin.
    all.sort_by_key(|path| (!path.starts_with("samples"), path.clone()));
    all
}

/// What became of the blocks of all documents.
#[derive(Default)]
struct Tally {
    run: AtomicUsize,
    elsewhere: AtomicUsize,
    not: AtomicUsize,
    later: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Tally {
    fn fail(&self, failure: String) {
        self.failures.lock().expect("no panic").push(failure);
    }
}

#[test]
fn the_commands_of_the_documents_do_what_they_say() {
    let chosen = std::env::var("KELOS_DOCUMENT").unwrap_or_default();
    let documents: Vec<String> = documents().into_iter().filter(|path| path.contains(&chosen)).collect();
    let (next, tally) = (AtomicUsize::new(0), Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(path) = documents.get(next.fetch_add(1, Ordering::Relaxed)) {
                    go_through(path, &tally);
                }
            });
        }
    });
    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    println!(
        "blocks of commands in documents: {} run here, {} elsewhere, {} with real servers, {} not run",
        count(&tally.run),
        count(&tally.elsewhere),
        count(&tally.later),
        count(&tally.not)
    );
    let failures = tally.failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Goes through a document as its reader does: block by block, in one copy of the repository. Blocks that need a real server are left to
/// [`real`].
fn go_through(path: &str, tally: &Tally) {
    let text = std::fs::read_to_string(root().join(path)).expect("a document");
    let blocks = match marks::blocks(&text) {
        Ok(blocks) => blocks,
        Err(wrong) => return tally.fail(format!("{path}: {wrong}")),
    };
    let (later, blocks): (Vec<Block>, Vec<Block>) = blocks.into_iter().partition(|block| block.server().is_some());
    tally.later.fetch_add(later.len(), Ordering::Relaxed);
    let mut desk = None;
    for block in blocks {
        let said = match &block.mark {
            Mark::Not => {
                tally.not.fetch_add(1, Ordering::Relaxed);
                desk::understood(&block.text)
            }
            Mark::By(script) => {
                tally.elsewhere.fetch_add(1, Ordering::Relaxed);
                elsewhere(script, &block.text)
            }
            Mark::File(name, names) => {
                desk.get_or_insert_with(Desk::new).write(name, names, &block.text);
                Ok(())
            }
            Mark::Run(Run { needs: Some(program), .. }) if !is_there(program) => {
                tally.not.fetch_add(1, Ordering::Relaxed);
                let told = format!("skipped: it needs {program}");
                println!("{path}:{}: {told}", block.line);
                if std::env::var_os("CI").is_some() { Err(told) } else { Ok(()) }
            }
            Mark::Run(run) => {
                tally.run.fetch_add(1, Ordering::Relaxed);
                if run.anew {
                    desk = None;
                }
                desk.get_or_insert_with(Desk::new).run(run, &block.text)
            }
        };
        if let Err(wrong) = said {
            tally.fail(format!("{path}:{}: {wrong}", block.line));
        }
    }
}

/// Whether a program is on the path.
fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Holds the commands of a block against the script that runs them.
fn elsewhere(script: &str, text: &[String]) -> Result<(), String> {
    let script_text =
        std::fs::read_to_string(root().join(script)).map_err(|error| format!("read {script}: {error}"))?;
    match text.iter().map(|line| line.trim()).find(|line| !script_text.contains(line)) {
        Some(line) => Err(format!("{script} has no \"{line}\"")),
        None => Ok(()),
    }
}

/// Stands for curl where a document calls it: plain tests have no other program than a shell. Documents call it by the
/// script that [`Desk`] puts on their path.
#[test]
#[ignore = "the documents call it"]
fn curl() {
    if let (Ok(arguments), Ok(server)) = (std::env::var(desk::ARGUMENTS), std::env::var(desk::SERVER)) {
        desk::curl(&arguments, &server);
    }
}
