//! The marks above blocks in Markdown: which are run, where, and what in them stands for something else.

/// A block with its mark.
pub(crate) struct Block {
    /// The line of the mark, from 1.
    pub(crate) line: usize,
    pub(crate) mark: Mark,
    /// Its lines, without fence and indentation.
    pub(crate) text: Vec<String>,
}

impl Block {
    /// The real server without which it makes no sense.
    pub(crate) fn server(&self) -> Option<&str> {
        match &self.mark {
            Mark::Run(run) => run.on.as_deref(),
            Mark::File(_, names) => names.iter().any(|(_, value)| value == "POSTGRES").then_some("postgres"),
            Mark::By(_) | Mark::Not => None,
        }
    }
}

pub(crate) enum Mark {
    /// `<!-- run … -->`
    Run(Run),
    /// `<!-- file NAME -->`, with names as in [`Run`]: the block is the text of this file.
    File(String, Vec<(String, String)>),
    /// `<!-- run by PATH -->`: something else runs it.
    By(String),
    /// `<!-- not run: REASON -->`
    Not,
}

/// How a block is run.
#[derive(Default)]
pub(crate) struct Run {
    /// In a copy that no block before has touched.
    pub(crate) anew: bool,
    /// Each command is tried again until it succeeds.
    pub(crate) patiently: bool,
    /// The numbers that a transcript has are not compared.
    pub(crate) roughly: bool,
    /// A server is up in the folder.
    pub(crate) served: bool,
    /// The servers that were started before have ended.
    pub(crate) unserved: bool,
    /// A program that it calls, and a laptop may lack.
    pub(crate) needs: Option<String>,
    /// The real server that it needs, by the name that `servers/run` has for it.
    pub(crate) on: Option<String>,
    /// The folder, below a copy of the repository.
    pub(crate) folder: String,
    /// What the document says, and what stands for it here.
    pub(crate) names: Vec<(String, String)>,
}

/// All marked blocks of a document, from its beginning.
pub(crate) fn blocks(document: &str) -> Result<Vec<Block>, String> {
    let lines: Vec<&str> = document.lines().collect();
    let mut blocks = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let Some(words) = line.trim().strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) else {
            continue;
        };
        if let Some(mark) = mark(words).map_err(|wrong| format!("line {}: {wrong}", n + 1))? {
            blocks.push(Block { line: n + 1, mark, text: text(&lines[n + 1..]) });
        }
    }
    Ok(blocks)
}

fn mark(words: &str) -> Result<Option<Mark>, String> {
    if words.starts_with("not run: ") {
        return Ok(Some(Mark::Not));
    }
    if let Some(words) = words.strip_prefix("file ") {
        let (name, pairs) = words.split_once(" with ").unwrap_or((words, ""));
        return Ok(Some(Mark::File(name.to_owned(), names(pairs)?)));
    }
    if let Some(path) = words.strip_prefix("run by ") {
        return Ok(Some(Mark::By(path.to_owned())));
    }
    match words.strip_prefix("run") {
        Some(rest) if rest.is_empty() || rest.starts_with(' ') => run(rest).map(|run| Some(Mark::Run(run))),
        _ => Ok(None),
    }
}

/// `[anew] [patiently] [roughly] [served|unserved] [needs PROGRAM] [on SERVER] [in FOLDER] [with NAME = VALUE, NAME = VALUE]`
fn run(words: &str) -> Result<Run, String> {
    let (words, pairs) = words.split_once(" with ").unwrap_or((words, ""));
    let mut run = Run { names: names(pairs)?, ..Run::default() };
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "anew" => run.anew = true,
            "patiently" => run.patiently = true,
            "roughly" => run.roughly = true,
            "served" => run.served = true,
            "unserved" => run.unserved = true,
            "needs" => run.needs = Some(words.next().ok_or("expected a program after needs")?.to_owned()),
            "on" => run.on = Some(words.next().ok_or("expected a server after on")?.to_owned()),
            "in" => words.next().ok_or("expected a folder after in")?.clone_into(&mut run.folder),
            _ => {
                return Err(format!(
                    "expected anew, patiently, roughly, served, unserved, needs PROGRAM, on SERVER, in FOLDER or with NAME = VALUE, found {word}"
                ));
            }
        }
    }
    Ok(run)
}

/// The texts of a block that are replaced, with their replacements: `NAME = VALUE, NAME = VALUE`.
fn names(pairs: &str) -> Result<Vec<(String, String)>, String> {
    let pairs = pairs.split(", ").filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once(" = ").ok_or_else(|| format!("expected NAME = VALUE, found {pair}"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

/// The block that begins these lines.
fn text(lines: &[&str]) -> Vec<String> {
    let mut lines = lines.iter().skip_while(|line| line.trim().is_empty()).peekable();
    let Some(first) = lines.peek() else { return Vec::new() };
    let indent = first.len() - first.trim_start().len();
    let dedent = |line: &&str| line.get(indent..).unwrap_or_default().to_owned();
    if first.trim_start().starts_with("```") {
        return lines.skip(1).take_while(|line| !line.trim_start().starts_with("```")).map(dedent).collect();
    }
    let inside = |line: &&&str| line.trim().is_empty() || line.len() - line.trim_start().len() >= indent;
    let mut text: Vec<String> = lines.take_while(inside).map(dedent).collect();
    while text.last().is_some_and(String::is_empty) {
        text.pop();
    }
    text
}
