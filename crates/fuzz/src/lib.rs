//! Random input for every parser of Kelos, deterministic from a seed.
//!
//! A *target* is a parser with a corpus of good and bad input; the inputs are mutations of the corpus. A parser may refuse anything,
//! and may neither panic nor take long, and what it takes must survive being printed and read again. An input that found something
//! is kept in `fixtures/fuzz/TARGET`, where plain `cargo test` gives it to the parser again.

#![forbid(unsafe_code)]

mod corpus;
mod dice;
mod mutate;
mod targets;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use dice::Dice;

pub use corpus::kept;
pub use targets::targets;

/// The longest time that a parser may take for one input, in a build without optimization on a busy machine.
const SLOW: Duration = Duration::from_secs(5);
/// After this time a parser counts as hanging.
const HANGS: Duration = Duration::from_secs(60);
/// No more findings of one target are collected.
const MOST_FINDINGS: usize = 20;

/// A function that gives a parser an input; the error is a broken property.
pub type Check = Box<dyn Fn(&[u8]) -> Result<(), String> + Send + Sync>;

/// A parser, and what it is given.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Good and bad input.
    pub corpus: Vec<Vec<u8>>,
    /// Words that mean something to it.
    pub words: &'static [&'static str],
    /// Gives it an input; the error is a broken property.
    pub check: Check,
}

/// An input that broke something.
#[derive(Debug)]
pub struct Finding {
    /// The name of the target.
    pub target: &'static str,
    /// The property that broke, or the words of the panic.
    pub what: String,
    /// The input.
    pub input: Vec<u8>,
    /// The file that keeps it.
    pub file: PathBuf,
}

/// The result of fuzzing one target.
#[derive(Debug, Default)]
pub struct FuzzResult {
    /// How many inputs it was given.
    pub inputs: u64,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// Gives a target mutations of its corpus for some time. A parser that hangs ends the process, since nothing else can end it.
#[must_use]
pub fn fuzz(target: &Target, seed: u64, time: Duration) -> FuzzResult {
    std::panic::set_hook(Box::new(|_| {}));
    let mut hasher = DefaultHasher::new();
    target.name.hash(&mut hasher);
    let mut dice = Dice::new(seed ^ hasher.finish());
    let until = Instant::now() + time;
    let mut fuzzed = FuzzResult::default();
    let (beat, beats) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || watch(target.name, &beats));
        for number in 0.. {
            if number > 0 && (Instant::now() >= until || fuzzed.findings.len() >= MOST_FINDINGS) {
                break;
            }
            // Each of the corpus goes first as it is.
            let input = match target.corpus.get(number) {
                Some(input) => input.clone(),
                None => mutate::mutated(&target.corpus, target.words, &mut dice),
            };
            let _ = beat.send(input.clone());
            if let Err(what) = give(target, &input)
                && !fuzzed.findings.iter().any(|known| alike(&known.what, &what))
            {
                let file = keep(target.name, &input);
                fuzzed.findings.push(Finding { target: target.name, what, input, file });
            }
            fuzzed.inputs += 1;
        }
        drop(beat);
    });
    let _ = std::panic::take_hook();
    fuzzed
}

/// Gives a target one input.
///
/// # Errors
/// The failure, in words.
pub fn give(target: &Target, input: &[u8]) -> Result<(), String> {
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(input)));
    let took = began.elapsed();
    match outcome {
        Ok(Ok(())) if took > SLOW => Err(format!("it took {took:.1?}")),
        Ok(outcome) => outcome,
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            Err(format!("it panicked: {}", words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without words")))
        }
    }
}

/// Ends the process if no input comes for too long, and keeps the one that hangs.
fn watch(target: &str, beats: &std::sync::mpsc::Receiver<Vec<u8>>) {
    let mut last = Vec::new();
    loop {
        match beats.recv_timeout(HANGS) {
            Ok(input) => last = input,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                println!("{target}: it hangs; the input is kept in {}", keep(target, &last).display());
                std::process::exit(1);
            }
        }
    }
}

/// Whether two findings are of one kind: their words begin alike.
fn alike(one: &str, other: &str) -> bool {
    let start = |words: &str| words.chars().take(40).collect::<String>();
    start(one) == start(other)
}

/// Keeps an input among the fixtures.
fn keep(target: &str, input: &[u8]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let folder = corpus::fixtures().join("fuzz").join(target);
    let file = folder.join(format!("{:016x}", hasher.finish()));
    if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input)) {
        println!("failed to keep an input in {}: {error}", file.display());
    }
    file
}
