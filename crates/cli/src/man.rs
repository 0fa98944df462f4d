//! `kelos man`: the manual pages, one for each command, from the definitions that `--help` is made of.

use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use crate::examples;
use crate::failure::Failure;

#[derive(clap::Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, which is created
    dir: PathBuf,
}

/// The heading of paragraphs that have none.
const NOTES: &str = "NOTES";

pub(crate) fn run(args: &ManArgs, mut command: Command) -> Result<u8, Failure> {
    command.build();
    let failed = |error: io::Error| Failure::bad(format!("write the manual to {}: {error}", args.dir.display()));
    std::fs::create_dir_all(&args.dir).and_then(|()| write(&command, None, &args.dir)).map_err(failed)?;
    Ok(0)
}

/// Writes the page of a command, and those of the commands below it.
fn write(command: &Command, parent: Option<&Command>, dir: &Path) -> io::Result<()> {
    std::fs::write(dir.join(format!("{}.1", name(command))), page(command, parent)?)?;
    shown(command).try_for_each(|one| write(one, Some(command), dir))
}

fn page(command: &Command, parent: Option<&Command>) -> io::Result<Vec<u8>> {
    let source = format!("kelos {}", env!("CARGO_PKG_VERSION"));
    // A page without a date has a blank one, as what follows would be taken for it.
    let man = Man::new(command.clone().subcommand_value_name("COMMAND")).title(name(command).to_uppercase());
    let man = man.date(" ").source(source).manual("Kelos manual");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    let mut roff = Roff::new();
    commands(&mut roff, command);
    examples_of(&mut roff, command);
    rest(&mut roff, command);
    see_also(&mut roff, parent);
    roff.to_writer(&mut out)?;
    Ok(out)
}

/// The name of the page: the words of the command, joined by hyphens.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The commands below a command that are not hidden.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|one| !one.is_hide_set())
}

fn commands(roff: &mut Roff, command: &Command) {
    if shown(command).next().is_some() {
        roff.control("SH", ["COMMANDS"]);
    }
    for one in shown(command) {
        roff.control("TP", []);
        roff.text([bold(name(one)), roman("(1)")]);
        roff.text([roman(one.get_about().map(ToString::to_string).unwrap_or_default())]);
    }
}

fn examples_of(roff: &mut Roff, command: &Command) {
    let words = command.get_bin_name().unwrap_or_default();
    let lines = examples::lines(words.strip_prefix("kelos").unwrap_or(words).trim_start());
    if !lines.is_empty() {
        roff.control("SH", ["EXAMPLES"]);
    }
    for (line, purpose) in lines {
        roff.control("TP", []);
        roff.text([bold(*line)]);
        roff.text([roman(*purpose)]);
    }
}

/// The paragraphs at the end of the help. The first line of one may be its heading.
fn rest(roff: &mut Roff, command: &Command) {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut heading = None;
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        let (first, below) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        let (title, body) = match first.strip_suffix(':') {
            Some("Exit codes") => ("EXIT STATUS".to_owned(), below),
            Some(title) => (title.to_uppercase(), below),
            None => (NOTES.to_owned(), paragraph),
        };
        if heading.as_ref() == Some(&title) {
            roff.control("PP", []);
        } else {
            roff.control("SH", [title.as_str()]);
        }
        // Columns stay as they are.
        let columns = title != NOTES;
        if columns {
            roff.control("nf", []);
        }
        body.lines().for_each(|line| _ = roff.text([roman(line)]));
        if columns {
            roff.control("fi", []);
        }
        heading = Some(title);
    }
}

fn see_also(roff: &mut Roff, parent: Option<&Command>) {
    if let Some(parent) = parent {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold(name(parent)), roman("(1)")]);
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn pages(command: &Command, parent: Option<&Command>, all: &mut Vec<(String, String)>) {
        let page = String::from_utf8(page(command, parent).expect("a page")).expect("text");
        all.push((name(command).to_owned(), page));
        shown(command).for_each(|one| pages(one, Some(command), all));
    }

    #[test]
    fn each_command_has_a_page_that_ends_with_examples_and_leads_back() {
        let mut command = Cli::command();
        command.build();
        let mut all = Vec::new();
        pages(&command, None, &mut all);
        let page = |name: &str| &all.iter().find(|(one, _)| one == name).expect("a page").1;
        for name in ["kelos-why", "kelos-tell-signal", "kelos-backfills-cancel"] {
            assert!(page(name).contains(".SH EXAMPLES"), "{name}");
        }
        assert!(
            page("kelos-tell-signal").contains(".SH \"SEE ALSO\"\n\\fBkelos\\-tell\\fR(1)"),
            "{}",
            page("kelos-tell-signal")
        );
        assert!(page("kelos").contains("\\fBkelos\\-why\\fR(1)") && page("kelos").contains(".SH \"EXIT STATUS\"\n.nf"));
        assert!(!all.iter().any(|(name, _)| name == "kelos-complete"), "what is hidden has no page");
    }
}
