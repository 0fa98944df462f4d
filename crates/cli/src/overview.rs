//! The commands in `kelos --help`, in groups by what they are for.

use clap::Command;

/// The headings, each with the names of its commands.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["init", "new", "check", "test", "plan", "cron", "up"]),
    (
        "Look",
        &[
            "ls",
            "slots",
            "why",
            "logs",
            "failures",
            "stuck",
            "steps",
            "calendar",
            "graph",
            "schedules",
            "facts",
            "source",
            "capacity",
            "alerts",
            "events",
            "sql",
        ],
    ),
    (
        "Change",
        &[
            "start",
            "rerun",
            "kill",
            "skip",
            "mark",
            "pause",
            "resume",
            "signal",
            "tell",
            "schedule",
            "backfill",
            "backfills",
            "groups",
        ],
    ),
    ("Jobs with ids", &["submit", "run", "queue", "parents", "children"]),
    ("Servers and workers", &["serve", "worker", "workers", "nodes", "move", "recover", "deploy", "undeploy"]),
    ("Care", &["doctor", "storage", "verify", "export", "key"]),
    ("Access", &["login", "logout", "whoami", "user", "token", "audit"]),
    ("From other schedulers", &["import", "shadow"]),
    ("Editors and shells", &["types", "schema", "completions"]),
];

/// The command line with its commands in groups; whatever is in none comes last.
pub(crate) fn grouped(command: Command) -> Command {
    let visible: Vec<&Command> = command.get_subcommands().filter(|one| !one.is_hide_set()).collect();
    let width = visible.iter().map(|one| one.get_name().len()).max().unwrap_or(0);
    let line = |one: &&Command| {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:<width$}  {about}\n", one.get_name())
    };
    let mut listed = String::new();
    for (heading, names) in GROUPS {
        let of_group = names.iter().filter_map(|name| visible.iter().find(|one| one.get_name() == *name));
        listed.push_str(&format!("{heading}:\n{}\n", of_group.map(line).collect::<String>()));
    }
    let is_grouped = |one: &&&Command| GROUPS.iter().any(|(_, names)| names.contains(&one.get_name()));
    let others: String = visible.iter().filter(|one| !is_grouped(one)).map(line).collect();
    if !others.is_empty() {
        listed.push_str(&format!("Others:\n{others}\n"));
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}Options:\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let mut visible: Vec<&str> =
            command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible);
    }

    #[test]
    fn the_help_has_the_groups_and_all_else() {
        let help = grouped(Cli::command()).render_help().to_string();
        for words in ["Usage: kelos", "\nLook:\n  ls ", "\nOptions:\n", "--version", "Exit codes:"] {
            assert!(help.contains(words), "{words}: {help}");
        }
        assert!(!help.contains("Commands:") && !help.contains("Others:"), "{help}");
    }
}
