//! The examples at the end of each `--help`.

use clap::Command;

/// The examples of a command.
struct Examples {
    /// The words of the command behind `kelos`; none for the help of all of them.
    command: &'static str,
    /// Lines to type into a shell, with the purpose of each.
    lines: &'static [(&'static str, &'static str)],
}

const fn of(command: &'static str, lines: &'static [(&'static str, &'static str)]) -> Examples {
    Examples { command, lines }
}

/// The examples of a command, by its words behind `kelos`: lines, each with its purpose.
pub(crate) fn lines(command: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|one| one.command == command).map_or(&[], |one| one.lines)
}

/// The longest line beside which its purpose stands; below longer ones.
const BESIDE: usize = 52;

/// The command line with the examples at the end of each help, above what stands there already.
pub(crate) fn added(command: Command) -> Command {
    added_below(command, "")
}

fn added_below(mut command: Command, path: &str) -> Command {
    if let Some(examples) = EXAMPLES.iter().find(|one| one.command == path) {
        let text = match command.get_after_help() {
            Some(rest) => format!("{}\n\n{rest}", shown(examples)),
            None => shown(examples),
        };
        command = command.after_help(text);
    }
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    names.iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |one| added_below(one, path.trim_start()))
    })
}

fn shown(examples: &Examples) -> String {
    let width = examples.lines.iter().map(|(line, _)| line.len()).filter(|length| *length <= BESIDE).max().unwrap_or(0);
    let mut text = "Examples:".to_owned();
    for (line, purpose) in examples.lines {
        let gap = match width.checked_sub(line.len()) {
            Some(missing) => " ".repeat(missing + 2),
            None => "\n      ".to_owned(),
        };
        text.extend(["\n  ", line, &gap, purpose]);
    }
    text
}

const EXAMPLES: &[Examples] = &[
    of(
        "",
        &[
            ("kelos init first", "write a first project"),
            ("kelos up first", "run it; the board is at the address that it prints"),
            ("kelos why hello", "why the newest slot is in its state"),
        ],
    ),
    of("init", &[("kelos init", "in this folder"), ("kelos init first", "in a new folder")]),
    of(
        "new",
        &[
            ("kelos new --rust shop", "in a new folder"),
            ("kelos new --rust shop --sources ../kelos", "built with a checkout of Kelos"),
        ],
    ),
    of(
        "up",
        &[
            ("kelos up", "the scripts of this folder"),
            ("kelos up samples/quickstart --port 8080", "those of another one"),
            ("kelos up --planning-window 2d --max-running 8", "of the past, only two days; eight runs at a time"),
            ("kelos up --workers", "jobs are run by `kelos worker`"),
        ],
    ),
    of(
        "serve",
        &[
            ("kelos serve --port 8080 --autoSchedule 5", "the folders of Celos"),
            (
                "kelos serve --port 8080 --autoSchedule 5 --workflows workflows --defaults defaults --db db --logs logs",
                "other folders, which must exist",
            ),
        ],
    ),
    of(
        "worker",
        &[
            ("kelos worker", "jobs of all apps of this folder"),
            ("kelos worker -a modelBuild -n 4", "of one app, four at a time"),
        ],
    ),
    of(
        "run",
        &[
            ("kelos run report", "the next job of the queue"),
            ("kelos run report --job-id 20140601 --timeout 60", "this job, once it can run"),
        ],
    ),
    of("check", &[("kelos check", "the project in this folder"), ("kelos check samples/jobs --json", "for programs")]),
    of(
        "cron",
        &[
            ("kelos cron '30 6 * * 1-5'", "6:30 on working days, as a crontab has it"),
            ("kelos cron '0 0 2 * * ?' --zone Europe/Berlin --after 2026-03-27", "around a change of the clocks"),
        ],
    ),
    of(
        "plan",
        &[
            ("kelos plan --from 2026-11-20 --to 2026-11-21", "a day of the project in this folder"),
            (
                "kelos plan --from 2026-11-20 --to 2026-11-21 --workflow totals --slots --without in/lax",
                "each step of a workflow, if no text of lax comes",
            ),
        ],
    ),
    of(
        "deploy",
        &[
            ("kelos deploy --workflowName clicks --deployDir deploy --plan", "a preview, by the server"),
            (
                "kelos deploy --workflowName clicks --deployDir deploy --target sftp://celos@host/etc/target.json",
                "as Celos's own tool does it",
            ),
        ],
    ),
    of("undeploy", &[("kelos undeploy --workflowName clicks --plan", "a preview")]),
    of("parents", &[("kelos parents report 20140601", "what it waits for, one level up")]),
    of("children", &[("kelos children preprocess 20140601_1", "what waits for it, one level down")]),
    of(
        "test",
        &[
            ("kelos test", "all tests of the project in this folder"),
            ("kelos test tests/hello.test.js --filter 'tried again'", "some tests of a file"),
            ("kelos test --real --junit report.xml", "also with real commands, for a CI server"),
        ],
    ),
    of("ls", &[("kelos ls", "all workflows"), ("kelos ls --tag input --json", "those with a tag, for programs")]),
    of(
        "slots",
        &[
            ("kelos slots totals", "the newest slots of a workflow"),
            ("kelos slots --state failed,expired", "of all workflows, those in trouble"),
            ("kelos slots totals --from 2026-11-20 --to 2026-11-21 --all", "of a day"),
        ],
    ),
    of(
        "submit",
        &[
            ("kelos submit -a report -j 20140601 --dry-run", "which jobs would run, in which order"),
            ("kelos submit -a preprocess -j 20140601_1 20140601_2", "several jobs"),
            ("kelos submit -a report -j 20140601 --readd", "once more"),
        ],
    ),
    of("schedules", &[("kelos schedules", "all of them"), ("kelos schedules --trigger partitions --enabled", "some")]),
    of(
        "schedule add",
        &[
            ("kelos schedule add nightly for report --time '0 4 * * *'", "at 4:00"),
            (
                "kelos schedule add on-data for report --partitions sales=4 --window 22:00-06:00 --enabled",
                "after four new partitions, at night",
            ),
        ],
    ),
    of("schedule update", &[("kelos schedule update nightly --time '0 5 * * *' --without window", "other times")]),
    of("schedule show", &[("kelos schedule show nightly", "what it has collected, and what is missing")]),
    of("schedule status", &[("kelos schedule status nightly on-data", "two of them")]),
    of("schedule enable", &[("kelos schedule enable nightly --reason 'the sales are back'", "from now on")]),
    of("schedule disable", &[("kelos schedule disable nightly", "until it is enabled again")]),
    of("schedule delete", &[("kelos schedule delete nightly", "for good")]),
    of("schedule fire", &[("kelos schedule fire nightly --argument day=2026-11-21", "now, with an argument")]),
    of("schedule decisions", &[("kelos schedule decisions nightly --limit 5", "the newest five slots")]),
    of(
        "start",
        &[
            ("kelos start report", "now"),
            ("kelos start report --argument day=2026-11-21 --reason 'asked by Ann'", "with an argument"),
            ("kelos start report --arguments '{\"rows\": 100}'", "with those of a JSON object: numbers stay numbers"),
            ("kelos start report --arguments-file arguments.json", "with those of a file"),
            ("kelos start etl --key order-42 --wait", "a run with a name, until it has ended"),
        ],
    ),
    of(
        "steps",
        &[
            ("kelos steps etl order-42", "a run by its name"),
            ("kelos steps etl 2026-11-21T00:00Z", "that of a time"),
            ("kelos steps etl order-42 --items load", "the items of a list"),
        ],
    ),
    of(
        "signal",
        &[
            ("kelos signal etl order-42 approval", "without a payload"),
            ("kelos signal etl order-42 approval --payload '{\"by\": \"Ann\"}'", "with one"),
        ],
    ),
    of(
        "tell partitions",
        &[
            ("kelos tell partitions sales 3", "three new partitions"),
            ("kelos tell partitions sales --partition 2026-11-21 --key load-17", "one by name, counted once"),
        ],
    ),
    of("tell ended", &[("kelos tell ended import failed --run import-17", "a run of a program elsewhere")]),
    of("tell signal", &[("kelos tell signal report-now '{\"day\": \"2026-11-21\"}'", "with a payload")]),
    of("facts", &[("kelos facts", "the newest"), ("kelos facts --about partition:sales --limit 5", "of a dataset")]),
    of(
        "why",
        &[
            ("kelos why totals", "the newest slot of a workflow"),
            ("kelos why totals 2026-11-21T09:00Z --at 2026-11-21T10:30Z", "a slot, as it was then"),
            ("kelos why totals 2026-11-21T09:00Z --path", "why it took so long"),
            ("kelos why report 20140601", "a job"),
        ],
    ),
    of(
        "graph",
        &[
            ("kelos graph", "all workflows"),
            ("kelos graph --focus totals --up 3 --format dot | dot -Tsvg > totals.svg", "what totals depends on"),
            ("kelos graph --slot totals@2026-11-21T09:00Z", "what blocks a slot"),
        ],
    ),
    of("failures", &[("kelos failures", "latest first"), ("kelos failures --json", "for programs")]),
    of(
        "calendar",
        &[
            ("kelos calendar", "of all workflows, in UTC"),
            ("kelos calendar totals --from 2026-03-01 --zone Europe/Paris", "of one, in days of a zone"),
        ],
    ),
    of("stuck", &[("kelos stuck", "worst first"), ("kelos stuck --json", "for programs")]),
    of(
        "source",
        &[
            ("kelos source totals", "the script of its newest version"),
            ("kelos source totals --run 2026-11-21T09:00Z#1", "of the version that a run used"),
        ],
    ),
    of(
        "logs",
        &[
            ("kelos logs totals 2026-11-21T09:00Z", "the output of the latest run of a slot"),
            ("kelos logs totals 2026-11-21T09:00Z --run 1", "of its first run"),
            ("kelos logs totals 2026-11-21T09:00Z -f", "as it is written"),
            ("kelos logs totals 2026-11-21T09:00Z -t --stderr", "the times and the lines of standard error"),
        ],
    ),
    of(
        "rerun",
        &[
            ("kelos rerun totals 2026-11-21T09:00Z", "one slot"),
            ("kelos rerun wordcount-lax 2026-11-21T09:00Z --downstream --dry-run", "what would run after it"),
            ("kelos rerun totals --from 2026-11-20 --to 2026-11-21 --reason 'new texts'", "all slots of a day"),
            ("kelos rerun totals --failed", "all that failed or expired and were not repaired since"),
        ],
    ),
    of("kill", &[("kelos kill totals 2026-11-21T09:00Z --reason 'it hangs'", "one slot")]),
    of("skip", &[("kelos skip totals 2026-11-21T09:00Z", "one slot")]),
    of("mark", &[("kelos mark totals 2026-11-21T09:00Z succeeded", "what is downstream can start")]),
    of("pause", &[("kelos pause totals wordcount-lax --reason 'the disk is full'", "two workflows")]),
    of(
        "resume",
        &[
            ("kelos resume totals wordcount-lax", "two workflows"),
            ("kelos resume etl --run order-42", "the failed steps of a run"),
            ("kelos resume etl --run order-42 --from load", "a step and all after it"),
        ],
    ),
    of(
        "backfill",
        &[
            ("kelos backfill ingest --from 2026-10-01 --to 2026-11-01 --dry-run", "a month: which slots would run"),
            ("kelos backfill ingest --from 2026-10-01 --to 2026-11-01", "run them, and wait until they have ended"),
            (
                "kelos backfill ingest --from 2026-10-01 --to 2026-11-01 --mode unsuccessful --no-wait",
                "those that ended without success, once more",
            ),
        ],
    ),
    of("backfills", &[("kelos backfills", "the newest"), ("kelos backfills --workflow ingest", "of a workflow")]),
    of(
        "backfills show",
        &[
            ("kelos backfills show october", "its progress, and why slots failed"),
            ("kelos backfills show october --follow", "until it has ended"),
        ],
    ),
    of("backfills pause", &[("kelos backfills pause october --reason 'the source is slow'", "until it is resumed")]),
    of("backfills resume", &[("kelos backfills resume october", "where it was paused")]),
    of("backfills priority", &[("kelos backfills priority october 5", "before current work, whose priority is 0")]),
    of("backfills rerun", &[("kelos backfills rerun october", "what failed or expired")]),
    of("backfills cancel", &[("kelos backfills cancel october", "what has not started")]),
    of("nodes", &[("kelos nodes", "which node leads, and how far the others have followed")]),
    of(
        "nodes raise",
        &[("kelos nodes raise --dry-run", "whether all nodes read the newest form of entries, after an upgrade")],
    ),
    of(
        "move",
        &[
            ("kelos move --to file:/srv/kelos/log", "move what is in .kelos to a log that several nodes share"),
            ("kelos move --from file:/srv/kelos/log --state state", "move it back to one file"),
        ],
    ),
    of(
        "recover",
        &[
            ("kelos recover --store file:/srv/kelos/log --state state", "say what this node has that the log has lost"),
            ("kelos recover --store file:/srv/kelos/log --state state --append-tail", "put it back into the log"),
        ],
    ),
    of("workers", &[("kelos workers", "who runs commands, with how much room, since when")]),
    of(
        "storage",
        &[
            ("kelos storage", "the sizes of the database and of the folders of runs, and what goes when"),
            ("kelos storage --agree --reason 'the old output is archived'", "also what is from before the upgrade"),
        ],
    ),
    of("alerts", &[("kelos alerts", "what is open, who is told, and whether the channels work")]),
    of("alerts test", &[("kelos alerts test team", "send a notice that says that nothing has happened")]),
    of("capacity", &[("kelos capacity", "who holds permits, and who waits")]),
    of(
        "groups",
        &[
            ("kelos groups", "as they are"),
            ("kelos groups --set groups.json", "as the file says"),
            ("kelos groups --reset", "as the server was started"),
        ],
    ),
    of(
        "user",
        &[
            ("kelos user", "who may come in"),
            ("kelos user add anna --role operate@warehouse", "asks for the password"),
            ("kelos user change anna --disable", "with all sessions and tokens"),
        ],
    ),
    of("user list", &[("kelos user list --json", "as JSON")]),
    of(
        "user add",
        &[
            ("kelos user add anna --role view --role author@warehouse", "asks for the password"),
            ("kelos user add ben --role view --no-password", "signed in by a proxy or provider"),
        ],
    ),
    of(
        "user change",
        &[
            ("kelos user change anna --role view", "in place of the roles before"),
            ("kelos user change anna --password", "asks for the new one, and ends all sessions"),
        ],
    ),
    of("user remove", &[("kelos user remove anna", "with all sessions and tokens")]),
    of(
        "token",
        &[
            ("kelos token", "all tokens, without their secrets"),
            ("kelos token add nightly --role operate@warehouse --expires 90d", "shows it this once"),
            ("kelos token revoke nightly", "it opens nothing any more"),
        ],
    ),
    of("token list", &[("kelos token list", "with when each was last used")]),
    of("token add", &[("kelos token add nightly --role view --out nightly.token", "into a file for your eyes")]),
    of("token revoke", &[("kelos token revoke wm1cx9e5", "by its id, or by its name")]),
    of(
        "audit",
        &[
            ("kelos audit", "who did what, from where, by which credential"),
            ("kelos audit --who nightly --limit 200", "what one program did"),
        ],
    ),
    of(
        "login",
        &[
            ("kelos login https://kelos.example --user anna", "asks for the password, and keeps a token"),
            ("kelos login https://kelos.example", "asks for a token that you have"),
        ],
    ),
    of("logout", &[("kelos logout https://kelos.example", "forgets the token, and revokes it")]),
    of("whoami", &[("kelos whoami", "your name, and what you may do")]),
    of(
        "events",
        &[
            ("kelos events -f", "the newest, and those to come"),
            ("kelos events --workflow totals --limit 20", "of a workflow"),
            ("kelos events --after 0 --limit 1000 --json", "from the beginning, for programs"),
        ],
    ),
    of(
        "import celos",
        &[
            ("kelos import celos /var/lib/celos/db --dry-run", "what would be imported into this folder"),
            ("kelos import celos /var/lib/celos/db --db /var/lib/kelos", "for `kelos serve --db`"),
        ],
    ),
    of(
        "queue",
        &[
            ("kelos queue report", "how many jobs could start, and since when the oldest could"),
            ("kelos queue report --json", "the same for an autoscaler: queued, running, oldestSeconds, …"),
        ],
    ),
    of(
        "import stolos",
        &[
            ("kelos import stolos --from redis://localhost:6379 --dry-run", "what would be imported into this folder"),
            ("kelos import stolos --from zookeeper://zk1:2181,zk2:2181", "from ZooKeeper"),
            (
                "kelos import stolos --from rediss://ops@redis.example --password file:/etc/kelos/redis",
                "with TLS and a password",
            ),
        ],
    ),
    of("export celos", &[("kelos export celos celos-db --dir .", "the state of `kelos up` in this folder")]),
    of(
        "export log",
        &[
            ("kelos export log log.jsonl", "the log of this folder"),
            ("kelos export log - --from 790 --to 812 --db /var/lib/kelos", "some turns of a server"),
        ],
    ),
    of(
        "sql",
        &[
            ("kelos sql", "the views and their columns"),
            ("kelos sql \"select workflow, state, count(*) from slots group by 1, 2\"", "of this folder"),
            ("kelos sql --csv --db /var/lib/kelos 'select * from runs'", "of a server"),
        ],
    ),
    of(
        "verify",
        &[
            ("kelos verify", "the state of this folder"),
            ("kelos verify --db /var/lib/kelos --json", "of a server"),
            ("kelos verify --against s3://audit/checkpoints --public-key checkpoint.pem", "with its checkpoints"),
        ],
    ),
    of(
        "doctor",
        &[
            ("kelos doctor", "of this folder and its server"),
            (
                "kelos doctor --db /var/lib/kelos --workflows /etc/kelos/workflows --defaults /etc/kelos/defaults \
                 --server http://127.0.0.1:7437",
                "of `kelos serve`",
            ),
            ("kelos doctor --server https://kelos.example", "of a server on another machine"),
            ("kelos doctor --bundle kelos.tar.gz", "with a file for whoever helps, without secrets"),
        ],
    ),
    of(
        "key show",
        &[("kelos key show > checkpoint.pem", "of this folder"), ("kelos key show --db /var/lib/kelos", "of a server")],
    ),
    of(
        "shadow",
        &[
            ("kelos shadow http://celos:8080", "until it is interrupted"),
            ("kelos shadow http://celos:8080 --once --json", "one answer, for programs"),
        ],
    ),
    of("types", &[("kelos types > kelos.d.ts", "a file beside the scripts")]),
    of(
        "schema",
        &[
            ("kelos schema tasks > tasks.schema.json", "that of tasks.json"),
            ("kelos schema config > config.schema.json", "that of the file of `kelos up --config`"),
        ],
    ),
    of("completions", &[("kelos completions bash > kelos.bash", "a file to be read by the shell")]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory, FromArgMatches};

    use super::{EXAMPLES, added};
    use crate::args::Cli;

    /// The words of a line, as a shell takes them, up to where its output goes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                (c, Some(_)) => word.get_or_insert_default().push(c),
                ('\'' | '"', None) => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                ('>' | '|', None) => break,
                (' ', None) => words.extend(word.take()),
                (c, None) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }

    /// The commands that do something, by their words.
    fn leaves(command: &Command, path: &str, found: &mut BTreeSet<String>) {
        let subcommands: Vec<&Command> = command.get_subcommands().filter(|one| !one.is_hide_set()).collect();
        if subcommands.is_empty() || command.is_args_conflicts_with_subcommands_set() {
            found.insert(path.to_owned());
        }
        for one in subcommands {
            leaves(one, format!("{path} {}", one.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn each_command_has_examples_and_each_has_a_command() {
        let mut commands = BTreeSet::from([String::new()]);
        leaves(&Cli::command(), "", &mut commands);
        let with_examples: BTreeSet<String> = EXAMPLES.iter().map(|one| one.command.to_owned()).collect();
        assert_eq!(with_examples, commands);
        assert_eq!(with_examples.len(), EXAMPLES.len(), "one place for each command");
    }

    #[test]
    fn every_example_is_understood() {
        for (examples, (line, _)) in EXAMPLES.iter().flat_map(|one| one.lines.iter().map(move |line| (one, line))) {
            let begins = format!("kelos {}", examples.command);
            assert!(line.starts_with(begins.trim_end()), "{line} stands at {}", examples.command);
            let matches = added(Cli::command()).try_get_matches_from(words(line));
            let read = matches.and_then(|matches| Cli::from_arg_matches(&matches));
            read.map(drop).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn help_ends_with_examples_and_exit_codes() {
        let mut command = added(Cli::command());
        let all = command.render_help().to_string();
        let (examples, codes) = (all.find("Examples:"), all.find("Exit codes:"));
        assert!(examples.is_some() && examples < codes, "{all}");
        let tell = command.find_subcommand_mut("tell").and_then(|tell| tell.find_subcommand_mut("signal"));
        let tell = tell.expect("a command").render_help().to_string();
        assert!(
            tell.ends_with("Examples:\n  kelos tell signal report-now '{\"day\": \"2026-11-21\"}'  with a payload\n"),
            "{tell}"
        );
    }

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(words("kelos cron '0 0 2 * * ?' --count 3 > x"), ["kelos", "cron", "0 0 2 * * ?", "--count", "3"]);
        assert_eq!(words("a \"b 'c'\" ''"), ["a", "b 'c'", ""]);
    }
}
