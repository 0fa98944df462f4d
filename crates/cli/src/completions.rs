//! `kelos completions`: the file by which a shell completes the command line; and `kelos complete`, which that file asks for the
//! names of workflows.

use std::time::Duration;

use clap::{Arg, Command};
use clap_complete::Shell;
use kelos_wire::{ListDto, WorkflowDto};

use crate::address::Query;
use crate::connection;
use crate::failure::Failure;
use crate::text;

#[derive(clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    shell: Shell,
}

#[derive(clap::Args)]
pub(crate) struct CompleteArgs {
    /// Words after `kelos`, up to the one to complete
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Arguments and options that are names of workflows.
const NAMES: [&str; 5] = ["workflow", "workflows", "program", "focus", "apps"];

/// The time limit for a server, as a person waits who pressed the tab key.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The addition to the static completions of bash: the names of workflows, where there are any.
const OF_BASH: &str = r#"
_kelos_names() {
    local line="${COMP_LINE:0:COMP_POINT}" words cur before
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    cur="${words[-1]}"
    mapfile -t COMPREPLY < <(kelos complete -- "${words[@]:1}" 2>/dev/null)
    if (( ${#COMPREPLY[@]} == 0 )); then
        _kelos "$@"
    elif [[ $COMP_WORDBREAKS == *:* ]]; then
        # Bash takes a colon for the beginning of a word.
        before="${cur%"${cur##*:}"}"
        COMPREPLY=("${COMPREPLY[@]#"$before"}")
    fi
}
complete -F _kelos_names -o bashdefault -o default kelos
"#;

const OF_ZSH: &str = r#"
_kelos() {
    local -a names
    names=(${(f)"$(kelos complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#names )); then
        compadd -a names
    else
        _kelos_options "$@"
    fi
}
"#;

const OF_FISH: &str = r#"
complete -c kelos -f -a '(kelos complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
"#;

#[expect(clippy::unnecessary_wraps, reason = "every command has this signature")]
pub(crate) fn run(args: &CompletionsArgs, command: &mut Command) -> Result<u8, Failure> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, command, "kelos", &mut out);
    text::print(&with_names(args.shell, &String::from_utf8_lossy(&out)));
    Ok(0)
}

/// Static completions, with the names of workflows where the shell can ask for them.
fn with_names(shell: Shell, plain: &str) -> String {
    match shell {
        Shell::Bash => format!("{plain}{OF_BASH}"),
        // The last lines of the file call the function, so that it has to come before them.
        Shell::Zsh => plain.replacen("\n_kelos() {", &format!("{OF_ZSH}\n_kelos_options() {{"), 1),
        Shell::Fish => format!("{plain}{OF_FISH}"),
        _ => plain.to_owned(),
    }
}

/// Prints the names of workflows that the last word may become, a line for each: none where it is no such name, or no server answers.
#[expect(clippy::unnecessary_wraps, reason = "every command has this signature")]
pub(crate) fn complete(args: &CompleteArgs, command: &Command) -> Result<u8, Failure> {
    let Some((last, before)) = args.words.split_last() else { return Ok(0) };
    if argument(command, before).is_some_and(|argument| NAMES.contains(&argument.get_id().as_str())) {
        for name in matching(last, &known().unwrap_or_default()) {
            text::line(name);
        }
    }
    Ok(0)
}

/// The ids of the workflows of the server that a command would ask.
fn known() -> Option<Vec<String>> {
    let client = connection::running(PATIENCE)?;
    let list: ListDto<WorkflowDto> = client.get("list the workflows", "/workflows", &Query::new()).ok()?;
    Some(list.items.into_iter().map(|one| one.id).collect())
}

/// The names that begin with what was typed: the ids, or where none does what follows their last dot.
fn matching<'a>(typed: &str, ids: &'a [String]) -> Vec<&'a str> {
    let full: Vec<&str> = ids.iter().map(String::as_str).filter(|id| id.starts_with(typed)).collect();
    if !full.is_empty() {
        return full;
    }
    let short = ids.iter().filter_map(|id| id.rsplit_once('.').map(|(_, short)| short));
    short.filter(|short| short.starts_with(typed)).collect()
}

/// The argument or the option whose value comes after some words.
fn argument<'a>(command: &'a Command, words: &[String]) -> Option<&'a Arg> {
    let (mut command, mut position, mut value_of) = (command, 0, None);
    for word in words {
        if value_of.take().is_some() {
            continue;
        }
        if let Some(name) = word.strip_prefix('-').filter(|name| !name.is_empty()) {
            value_of = option(command, name).filter(|one| one.get_action().takes_values() && !word.contains('='));
        } else if let Some(inner) = command.find_subcommand(word) {
            (command, position) = (inner, 0);
        } else {
            position += 1;
        }
    }
    // More values than there are arguments belong to the last one, where that takes several.
    let many =
        || command.get_positionals().last().filter(|last| last.get_num_args().is_some_and(|n| n.max_values() > 1));
    value_of.or_else(|| command.get_positionals().nth(position).or_else(many))
}

/// The option of a name, which is what follows the first minus.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let is_it = |one: &&Arg| match name.strip_prefix('-') {
        Some(long) => one.get_long() == Some(long),
        None => name.chars().next_back() == one.get_short(),
    };
    command.get_opts().find(is_it)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    fn is_name(words: &str) -> bool {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let mut command = Cli::command();
        command.build();
        argument(&command, &words).is_some_and(|argument| NAMES.contains(&argument.get_id().as_str()))
    }

    #[test]
    fn names_are_completed_where_workflows_are_named() {
        for words in [
            "why",
            "logs --run 3",
            "kill --reason why",
            "pause a b",
            "slots",
            "backfill",
            "graph --focus",
            "events --workflow",
            "start",
            "submit -a",
            "why --at now",
        ] {
            assert!(is_name(words), "{words}");
        }
        for words in
            ["", "ls", "why w", "rerun w 2016-01-01", "logs w", "kill --reason", "up", "cron", "graph", "check"]
        {
            assert!(!is_name(words), "{words}");
        }
    }

    #[test]
    fn a_short_name_is_completed_where_no_id_begins_like_it() {
        let ids = ["Sales.report", "Sales.history", "shop"].map(str::to_owned);
        assert_eq!(matching("S", &ids), ["Sales.report", "Sales.history"]);
        assert_eq!((matching("rep", &ids), matching("x", &ids)), (vec!["report"], vec![]));
        assert_eq!(matching("", &ids).len(), 3);
    }

    #[test]
    fn each_shell_asks_for_names() {
        let script = |shell: Shell| {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kelos", &mut out);
            with_names(shell, &String::from_utf8_lossy(&out))
        };
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert_eq!(script(shell).matches("kelos complete -- ").count(), 1, "{shell}");
        }
        assert!(script(Shell::Zsh).contains("\n_kelos_options() {"));
    }
}
