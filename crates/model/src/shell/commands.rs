//! Simple commands: those that evaluate their arguments.

use std::ops::Range;

use super::lists;
use super::reader::{DEEPEST, Reader, Symbol};
use super::word::{Word, is_name};
use super::{Mention, ShellText, Trust};

const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ksh", "mksh", "zsh", "ash", "rbash", "busybox"];
/// Commands of which every argument may be a name.
const TAKES_NAMES: [&str; 16] = [
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "unset",
    "wait",
    "alias",
    "enable",
    "complete",
    "compgen",
    "compopt",
    "bind",
    "fc",
    "jobs",
    "hash",
    "let",
];
const DECLARES: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];
/// Commands that run the command that follows them.
const RUNS: [&str; 16] = [
    "command", "builtin", "exec", "env", "nohup", "setsid", "nice", "ionice", "sudo", "doas", "timeout", "xargs",
    "stdbuf", "chroot", "unshare", "busybox",
];
/// Those of them whose first argument that is no option is that command.
const RUNS_AT_ONCE: [&str; 6] = ["command", "builtin", "exec", "env", "nohup", "setsid"];
/// Programs that have a shell run all that they are given.
const HANDS_TO_A_SHELL: [&str; 6] = ["eval", "ssh", "rsh", "watch", "parallel", "batch"];
/// Programs that run one of their arguments, and the letter of the option before it.
const TAKES_CODE: [(&str, char); 14] = [
    ("su", 'c'),
    ("runuser", 'c'),
    ("flock", 'c'),
    ("script", 'c'),
    ("python", 'c'),
    ("python2", 'c'),
    ("python3", 'c'),
    ("perl", 'e'),
    ("perl", 'E'),
    ("ruby", 'e'),
    ("node", 'e'),
    ("php", 'r'),
    ("sed", 'e'),
    ("awk", 'e'),
];
/// Programs that run their first argument that is no option.
const RUNS_ITS_ARGUMENT: [&str; 7] = ["sed", "gsed", "awk", "gawk", "mawk", "nawk", "trap"];
/// Variables whose values bash evaluates by itself.
const EVALUATED: [&str; 13] = [
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "HISTCMD",
    "OPTIND",
    "BASHPID",
    "EPOCHSECONDS",
    "PS4",
    "PS0",
    "ENV",
    "BASH_ENV",
    "PROMPT_COMMAND",
];
const CODE: &str = "in what is run as a command";
const NAME: &str = "where a name of a variable is expected";

impl Reader {
    /// An assignment before a command, or without one.
    pub(super) fn assignment(&mut self, word: &Word) {
        let Some(name) = &word.assigned else { return };
        if EVALUATED.contains(&&**name) {
            self.demand(word.range.clone(), Trust::Number, "in the value of a variable that is evaluated");
        }
        self.found.flows.push((name.clone(), word.range.clone()));
    }

    /// A command with its arguments. `documents` says how many here-documents and here-strings it reads.
    pub(super) fn simple_command(&mut self, words: &[Word], documents: usize) {
        let Some((first, arguments)) = words.split_first() else { return };
        let Some(name) = first.text() else {
            self.chosen_command(first);
            return self.called(arguments);
        };
        if first.range.start < first.range.end {
            self.demand(first.range.clone(), Trust::Number, NAME);
        }
        let name = if name == "[" { name } else { name.rsplit('/').next().unwrap_or(name) }.to_owned();
        for (word, (variable, _)) in arguments.iter().filter_map(|word| Some((word, word.assignment()?))) {
            // It may be passed on as a variable, as `env` does.
            self.found.flows.push((variable.to_owned(), word.range.clone()));
        }
        self.known_command(&name, arguments, documents);
        for at in 0..arguments.len() {
            // Whatever it is, it may run a shell.
            let runs =
                |word: &Word| word.text().is_some_and(|text| SHELLS.contains(&text.rsplit('/').next().unwrap_or(text)));
            let Some(rest) = arguments.get(at + 1..).filter(|_| arguments.get(at).is_some_and(runs)) else { continue };
            if RUNS.contains(&&*name) || rest.iter().any(|word| word.lead.starts_with('-') && word.lead.contains('c')) {
                self.shell(rest, documents);
                break;
            }
        }
    }

    fn known_command(&mut self, name: &str, arguments: &[Word], documents: usize) {
        match name {
            "test" => self.condition(arguments, false),
            "[" => self.condition(arguments.split_last().map_or(&[], |(_, rest)| rest), false),
            "printf" => self.printf(arguments),
            "for" | "select" => self.loop_over(arguments),
            "function" => {
                self.has_functions = true;
                self.each(arguments, Trust::Number, "in the name of a function");
            }
            "set" => {
                self.found.flows.push(("@".to_owned(), range_of(arguments)));
            }
            "." | "source" => self.each(arguments.get(..1).unwrap_or_default(), Trust::Plain, CODE),
            _ if name.starts_with("read") && TAKES_NAMES.contains(&name) || name == "mapfile" => {
                self.read_names
                    .extend(arguments.iter().filter_map(Word::text).filter(|text| is_name(text)).map(str::to_owned));
                self.each(arguments, Trust::Number, NAME);
            }
            _ if TAKES_NAMES.contains(&name) => self.each(arguments, Trust::Number, NAME),
            _ if DECLARES.contains(&name) => self.declaration(arguments),
            _ if HANDS_TO_A_SHELL.contains(&name) => {
                self.handed_to_a_shell(arguments);
                // Without a command, it reads them.
                if arguments.iter().filter(|word| !word.begins_with_minus()).count() < 3 && name != "eval" {
                    self.reads_code(documents);
                }
            }
            _ if SHELLS.contains(&name) => self.shell(arguments, documents),
            _ if RUNS.contains(&name) => self.runner(name, arguments, documents),
            _ => {
                self.code_of(name, arguments);
                if documents > 0 && TAKES_CODE.iter().any(|(program, _)| *program == name) {
                    self.reads_code(documents);
                }
                self.called(arguments);
            }
        }
    }

    /// Arguments that may be those of a function.
    fn called(&mut self, arguments: &[Word]) {
        self.arguments.push(range_of(arguments));
    }

    fn each(&mut self, words: &[Word], trust: Trust, position: &'static str) {
        self.demand(range_of(words), trust, position);
    }

    /// A command whose name is only known when it is run: what is written of it has to say that it evaluates nothing.
    fn chosen_command(&mut self, word: &Word) {
        let trust = if word.tail.contains('=') { Trust::Number } else { Trust::Plain };
        let evaluates = TAKES_NAMES.iter().chain(&DECLARES).chain(&RUNS).chain(&HANDS_TO_A_SHELL).chain(&SHELLS);
        let more = ["test", "[", "printf", "source", ".", "trap", "set"];
        let mut evaluates = evaluates.chain(&more).chain(&RUNS_ITS_ARGUMENT);
        let file = word.lead.contains('/');
        if trust == Trust::Number
            || word.begins_dynamic()
            || (!file && evaluates.any(|name| name.starts_with(&word.lead) && name.ends_with(&word.tail)))
        {
            self.demand(word.range.clone(), trust, "in the name of a command");
        }
    }

    /// `printf` assigns to what follows `-v`, and, by `%n` in its format, to what follows that.
    fn printf(&mut self, arguments: &[Word]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match word.text() {
                Some("--") => {}
                Some("-v") => {
                    let name = words.next().map_or(0..0, |word| word.range.clone());
                    self.demand(name, Trust::Number, NAME);
                }
                _ if word.begins_with_minus() && !word.is("-") => self.demand(word.range.clone(), Trust::Number, NAME),
                _ => return self.demand(word.range.clone(), Trust::Number, "in the format of printf"),
            }
        }
    }

    fn loop_over(&mut self, arguments: &[Word]) {
        let Some((variable, values)) = arguments.split_first() else { return };
        self.demand(variable.range.clone(), Trust::Number, NAME);
        if let Some(name) = variable.text() {
            let values = if values.is_empty() { None } else { Some(range_of(values)) };
            if let Some(values) = values {
                self.found.flows.push((name.to_owned(), values));
            } else {
                self.found.mentions.push(Mention::Variable("@".to_owned()));
                let at = self.mark();
                self.found.flows.push((name.to_owned(), at - 1..at));
            }
        }
    }

    /// `declare` and its like: a value behind a name and `=` is one, everything else is a name.
    fn declaration(&mut self, arguments: &[Word]) {
        let options = arguments.iter().filter(|word| word.begins_with_minus() || word.lead.starts_with('+'));
        let evaluates = options.clone().any(|word| word.is_dynamic || word.lead.contains(['i', 'n', 'a', 'A']));
        for word in arguments {
            let Some((name, _)) = word.assignment() else {
                self.demand(word.range.clone(), Trust::Number, NAME);
                if evaluates && is_name(&word.lead) {
                    self.evaluated_names.push(word.lead.clone());
                }
                continue;
            };
            if evaluates {
                self.evaluated_names.push(name.to_owned());
            }
            let word = Word { assigned: Some(name.to_owned()), ..word.clone() };
            self.assignment(&word);
        }
    }

    fn handed_to_a_shell(&mut self, arguments: &[Word]) {
        self.each(arguments, Trust::Plain, CODE);
        let text: Option<Vec<&str>> = arguments.iter().map(Word::text).collect();
        if let Some(text) = text {
            self.text(&text.join(" "), 0..0);
        }
    }

    /// A shell: the text after `-c`, or the file that it reads, or its standard input.
    fn shell(&mut self, arguments: &[Word], documents: usize) {
        let mut words = arguments.iter().enumerate();
        while let Some((at, word)) = words.next() {
            let is_option = word.lead.starts_with(['-', '+']);
            if word.begins_dynamic() || (is_option && word.is_dynamic) {
                return self.demand(word.range.clone(), Trust::Plain, CODE);
            }
            if !is_option || word.is("-") {
                return;
            }
            let is_short = !word.lead.starts_with("--");
            if is_short && word.lead.contains('c') {
                let rest = arguments.get(at + 1..).unwrap_or_default();
                let code = rest.iter().position(|word| !word.lead.starts_with('-')).unwrap_or(0);
                let Some(code_word) = rest.get(code) else { return };
                self.demand(range_of(rest.get(..=code).unwrap_or_default()), Trust::Plain, CODE);
                if let Some(text) = code_word.text() {
                    self.text(text, range_of(rest.get(code + 1..).unwrap_or_default()));
                }
                return;
            }
            if is_short && word.lead.ends_with(['o', 'O']) {
                words.next();
            }
            if is_short && word.lead.contains('s') {
                break;
            }
        }
        self.reads_code(documents);
    }

    /// Notes that a command runs what it reads.
    fn reads_code(&mut self, documents: usize) {
        self.feeds_a_shell = true;
        for document in self.documents.iter_mut().rev().take(documents) {
            document.is_code = true;
        }
    }

    fn runner(&mut self, name: &str, arguments: &[Word], documents: usize) {
        let is_option = |word: &&Word| word.begins_with_minus() || (name == "env" && word.lead.contains('='));
        let skipped = arguments.iter().take_while(is_option).count();
        let splits = |word: &Word| word.lead.starts_with("-S") || word.lead.starts_with("--split-string");
        if name == "env" && arguments.iter().any(splits) {
            self.each(arguments, Trust::Plain, CODE);
        }
        let replaces = |word: &Word| ["-I", "-i", "--replace"].iter().any(|option| word.lead.starts_with(option));
        if name == "xargs" && arguments.iter().any(replaces) {
            self.feeds_a_shell |= arguments.iter().filter_map(Word::text).any(|text| SHELLS.contains(&text));
        }
        if RUNS_AT_ONCE.contains(&name) {
            let options = arguments.get(..skipped).unwrap_or_default();
            if name == "env" {
                let names = options.iter().filter(|word| word.assignment().is_none());
                names.for_each(|word| self.demand(word.range.clone(), Trust::Plain, CODE));
            }
            if options.iter().any(|word| word.is("-v") || word.is("-V")) && name == "command" {
                return;
            }
            if self.depth >= DEEPEST {
                return self.each(arguments, Trust::Number, CODE);
            }
            self.depth += 1;
            self.simple_command(arguments.get(skipped..).unwrap_or_default(), documents);
            self.depth -= 1;
            return;
        }
        // Which of its arguments is the command is not known without its options.
        let known = |text: &str| HANDS_TO_A_SHELL.contains(&text) || TAKES_CODE.iter().any(|(name, _)| *name == text);
        let command = arguments.iter().position(|word| word.text().is_some_and(known));
        let Some((first, rest)) = command.and_then(|at| arguments.get(at..)?.split_first()) else { return };
        self.known_command(first.text().unwrap_or_default(), rest, documents);
    }

    /// Programs that take a text in a language of their own.
    fn code_of(&mut self, name: &str, arguments: &[Word]) {
        for (at, word) in arguments.iter().enumerate() {
            let follows = |(program, letter): &(&str, char)| {
                let short = word.lead.starts_with('-') && !word.lead.starts_with("--") && word.lead.contains(*letter);
                *program == name && short
            };
            if TAKES_CODE.iter().any(follows) {
                self.each(arguments.get(at..at + 2).unwrap_or_default(), Trust::Plain, CODE);
            }
        }
        if !RUNS_ITS_ARGUMENT.contains(&name) {
            return;
        }
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if name.ends_with("awk") && (word.is("-v") || word.is("-F")) {
                words.next();
                continue;
            }
            if word.begins_with_minus() && !word.is("-") {
                continue;
            }
            self.demand(word.range.clone(), Trust::Plain, CODE);
            if let Some(text) = word.text().filter(|_| name == "trap").map(str::to_owned) {
                self.text(&text, 0..0);
            }
            return;
        }
    }

    /// A text that is run as a shell text of its own, with these arguments.
    fn text(&mut self, text: &str, arguments: Range<usize>) {
        if self.depth >= DEEPEST {
            return self.is_in_doubt();
        }
        let ShellText { mentions, demands, flows, .. } =
            lists::read(text.chars().map(Symbol::Char).collect(), self.depth + 1);
        self.texts += 1;
        let own = format!("@{}", self.texts);
        let renamed = |name: String| if name == "@" && !arguments.is_empty() { own.clone() } else { name };
        let by = self.mark();
        self.found.mentions.extend(mentions.into_iter().map(|mention| match mention {
            Mention::Variable(name) => Mention::Variable(renamed(name)),
            placeholder @ Mention::Placeholder(_) => placeholder,
        }));
        let moved = |range: Range<usize>| range.start + by..range.end + by;
        for demand in demands {
            self.demand(moved(demand.range), demand.trust, demand.position);
        }
        self.found.flows.extend(flows.into_iter().map(|(name, range)| (renamed(name), moved(range))));
        if !arguments.is_empty() {
            self.found.flows.push((own.clone(), arguments));
        }
    }
}

/// From the first mention of some words to the last.
fn range_of(words: &[Word]) -> Range<usize> {
    match (words.first(), words.last()) {
        (Some(first), Some(last)) => first.range.start..last.range.end,
        _ => 0..0,
    }
}
