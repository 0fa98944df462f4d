//! The targets.

mod config;
mod limits;
mod model;
mod records;
mod requests;
mod scripts;

use std::fmt::Debug;

use crate::Target;
use crate::corpus;

/// All of them. What once broke one is part of its corpus.
#[must_use]
pub fn targets() -> Vec<Target> {
    let mut all = model::targets();
    all.extend(records::targets());
    all.extend(config::targets());
    all.extend(scripts::targets());
    all.extend(requests::targets());
    all.push(limits::target());
    for target in &mut all {
        target.corpus.extend(corpus::kept(target.name).into_iter().map(|(_, input)| input));
    }
    all
}

/// A target that takes text; what is no UTF-8 reaches no parser of text.
fn text(
    name: &'static str,
    corpus: Vec<Vec<u8>>,
    words: &'static [&'static str],
    check: impl Fn(&str) -> Result<(), String> + Send + Sync + 'static,
) -> Target {
    let check = move |input: &[u8]| std::str::from_utf8(input).map_or(Ok(()), &check);
    Target { name, corpus, words, check: Box::new(check) }
}

/// A property: two things are equal.
fn equal<T: PartialEq + Debug>(what: &str, one: &T, other: &T) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{what}: {one:?} is not {other:?}")) }
}

/// A property: what was printed is read again.
fn reread<T, E: ToString>(what: &str, read: Result<T, E>) -> Result<T, String> {
    read.map_err(|error| format!("{what} is not read again: {}", error.to_string()))
}
