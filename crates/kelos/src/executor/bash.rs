//! Shell commands in which `{date}` stands for a value of the job.
//!
//! A value never becomes a part of what the shell parses, but where all its characters are harmless: the shell reads it from a
//! variable. Only `{date:raw}` is pasted whatever it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Start;
use super::translated::JobValues;
use crate::stolos::{Piece, Placeholders};

/// The settings of a command for a job: `shell` with its placeholders filled.
pub(super) fn command(start: &Start) -> Result<Map<String, Value>, String> {
    let mut settings = start.whole_settings();
    let text = settings.get("shell").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let text = text.ok_or("there is nothing to run: give its app a bash_cmd")?;
    let quoted = quoted(&Placeholders::read(text)?, &JobValues::of(start))?;
    settings.insert("shell".to_owned(), Value::String(quoted.text));
    let env = settings.entry("env").or_insert_with(|| json!({}));
    let env = env.as_object_mut().ok_or("`env` must be an object of strings")?;
    env.extend(quoted.variables.into_iter().map(|(name, value)| (name, Value::String(value))));
    Ok(settings)
}

/// A text for the shell, and the variables that it reads values from.
#[derive(Debug, Default, PartialEq, Eq)]
struct Quoted {
    text: String,
    variables: BTreeMap<String, String>,
}

fn quoted(placeholders: &Placeholders, values: &JobValues) -> Result<Quoted, String> {
    let mut quoted = Quoted::default();
    let mut shell = Shell::default();
    for (at, piece) in placeholders.pieces.iter().enumerate() {
        let (name, raw) = match piece {
            Piece::Text(text) => {
                quoted.text.push_str(text);
                shell.read(text);
                continue;
            }
            Piece::Value { name, raw } => (name, *raw),
        };
        let value = values.get(name).ok_or_else(|| format!("its command has {{{name}}}, which is not known"))?;
        let next = placeholders.pieces.get(at + 1);
        if raw {
            quoted.text.push_str(value);
            shell.read(value);
            continue;
        }
        if is_harmless(value, next) {
            quoted.text.push_str(value);
        } else {
            let variable = format!("KELOS_VALUE_{}", at + 1);
            quoted.text.push_str(&shell.reference(&variable));
            quoted.variables.insert(variable, value.to_owned());
        }
        shell.read("x");
    }
    Ok(quoted)
}

/// Whether a value means itself wherever the shell reads it.
fn is_harmless(value: &str, next: Option<&Piece>) -> bool {
    const RESERVED: [&str; 13] =
        ["if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in"];
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_./:@%+,-".contains(letter);
    // `1>file` redirects.
    let redirects = matches!(next, Some(Piece::Text(text)) if text.starts_with(['<', '>']));
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    let means_more = value.is_empty() || RESERVED.contains(&value) || (redirects && is_number);
    !means_more && value.chars().all(plain)
}

/// Where in a shell's text a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Single,
    Double,
    Comment,
    /// `$(…)`, or parentheses.
    Parentheses,
    /// `${…}`.
    Braces,
    Backquotes,
}

/// Follows the quoting of a text for the shell, as far as that decides how a variable is written.
#[derive(Debug, Default)]
struct Shell {
    within: Vec<Within>,
    /// What a here-document or the like leaves in doubt.
    in_doubt: bool,
    escaped: bool,
    before: Option<char>,
}

impl Shell {
    fn read(&mut self, text: &str) {
        let mut rest = text.chars().peekable();
        while let Some(letter) = rest.next() {
            let follows = rest.peek().copied();
            if std::mem::take(&mut self.escaped) {
                self.before = Some('x');
                continue;
            }
            match self.within.last() {
                Some(Within::Single) => self.close(letter, '\''),
                Some(Within::Comment) => self.close(letter, '\n'),
                Some(Within::Double) => self.expands(letter, follows, '"'),
                _ => self.plain(letter, follows),
            }
            self.before = Some(letter);
        }
    }

    fn close(&mut self, letter: char, end: char) {
        if letter == end {
            self.within.pop();
        }
    }

    /// Inside double quotes, and what is the same without.
    fn expands(&mut self, letter: char, follows: Option<char>, end: char) {
        match letter {
            _ if letter == end => drop(self.within.pop()),
            '\\' => self.escaped = true,
            '`' if self.within.last() == Some(&Within::Backquotes) => drop(self.within.pop()),
            '`' => self.within.push(Within::Backquotes),
            '{' if self.before == Some('$') => self.within.push(Within::Braces),
            '(' if self.before == Some('$') => {
                self.in_doubt |= follows == Some('(');
                self.within.push(Within::Parentheses);
            }
            _ => {}
        }
    }

    fn plain(&mut self, letter: char, follows: Option<char>) {
        let begins_a_word = self.before.is_none_or(|before| before.is_whitespace() || ";|&(".contains(before));
        match (letter, self.within.last()) {
            ('\'', _) if self.before == Some('$') => self.in_doubt = true,
            ('\'', _) => self.within.push(Within::Single),
            ('"', _) => self.within.push(Within::Double),
            ('#', _) if begins_a_word => self.within.push(Within::Comment),
            ('<', _) => self.in_doubt |= follows == Some('<'),
            ('(', _) if self.before != Some('$') => self.within.push(Within::Parentheses),
            (')', Some(Within::Parentheses)) | ('}', Some(Within::Braces)) => drop(self.within.pop()),
            // A pattern of `case`.
            (')', _) => self.in_doubt = true,
            _ => self.expands(letter, follows, '\0'),
        }
    }

    /// How a variable is read here as one word.
    fn reference(&self, variable: &str) -> String {
        let nested = self.within.iter().any(|one| matches!(one, Within::Backquotes | Within::Braces));
        match self.within.last() {
            _ if self.in_doubt || nested => format!("${{{variable}}}"),
            Some(Within::Single) => format!("'\"${{{variable}}}\"'"),
            Some(Within::Double) => format!("${{{variable}}}"),
            _ => format!("\"${{{variable}}}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: &[(&str, &str)]) -> JobValues {
        JobValues::from_pairs(all)
    }

    fn text(command: &str, value: &str) -> String {
        quoted(&Placeholders::read(command).unwrap(), &values(&[("x", value)])).unwrap().text
    }

    /// What the shell prints.
    fn printed(command: &str, value: &str) -> String {
        let quoted = quoted(&Placeholders::read(command).unwrap(), &values(&[("x", value)])).unwrap();
        let mut shell = std::process::Command::new("/bin/sh");
        let output = shell.arg("-c").arg(&quoted.text).envs(&quoted.variables).current_dir("/").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn harmless_values_are_written_as_they_are() {
        assert_eq!(
            text("echo base-{x} '{x}' \"{x}\"", "20140601_a.b"),
            "echo base-20140601_a.b '20140601_a.b' \"20140601_a.b\""
        );
        assert_eq!(text("echo {x}>file", "2"), "echo \"${KELOS_VALUE_2}\">file");
        assert_eq!(text("echo {x}", "done"), "echo \"${KELOS_VALUE_2}\"");
        assert_eq!(text("{x} cmd", "A=b"), "\"${KELOS_VALUE_1}\" cmd");
        assert_eq!(text("echo {x:raw}", "a; b"), "echo a; b");
    }

    /// Values of job ids were pasted into the text of the shell.
    #[test]
    fn fault_13_no_value_is_ever_run() {
        let evil = [
            "; echo INJECTED",
            "$(echo INJECTED)",
            "`echo INJECTED`",
            "' ; echo INJECTED ; '",
            "\" ; echo INJECTED ; \"",
            "a b  c",
            "*",
            "~",
            "\\",
            "${HOME}",
            "&& echo INJECTED",
            "| echo INJECTED",
            "#x",
            "a)b",
            "é$",
            "!",
            "-n=x y",
        ];
        let commands = [
            ("printf %s {x}", ""),
            ("printf %s '{x}'", ""),
            ("printf %s \"{x}\"", ""),
            ("printf %s a'b'\"c\"{x}", "abc"),
            ("printf %s \"$(printf %s {x})\"", ""),
            ("printf %s \"$(printf %s \"{x}\")\"", ""),
            ("printf %s \"$(printf %s '{x}')\"", ""),
            ("# don't\nprintf %s {x} # it's", ""),
            ("(printf %s \"a'\"{x})", "a'"),
            ("A='{x}'; printf %s \"$A\"", ""),
            ("printf %s \\'{x}", "'"),
            ("printf %s \"${{NOTHING-}}{x}\"", ""),
        ];
        for value in evil {
            for (command, before) in commands {
                assert_eq!(printed(command, value), format!("{before}{value}"), "{command} with {value}");
            }
        }
    }

    #[test]
    fn where_the_quoting_is_in_doubt_nothing_is_run_either() {
        let commands = [
            "cat << EOF\n{x}\nEOF\n",
            "cat << 'EOF'\n{x}\nEOF\n",
            "echo `echo {x}`",
            "echo `echo '{x}'`",
            "echo \"$(case a in a) echo {x};; esac)\"",
            "echo $(( 1 + 1 )) {x}",
            "echo \\{x}",
            "echo ${{A:-{x}}}",
        ];
        for value in [
            "; touch /INJECTED",
            "$(touch /INJECTED)",
            "`touch /INJECTED`",
            "' ; echo INJ''ECTED ; '",
            "\"; echo INJ''ECTED; \"",
        ] {
            for command in commands {
                let printed = printed(command, value);
                assert!(
                    !printed.contains("INJECTED\n") || printed.contains("touch"),
                    "{command} with {value}: {printed}"
                );
                assert!(!std::path::Path::new("/INJECTED").exists());
            }
        }
    }

    #[test]
    fn a_value_that_is_not_known_is_told() {
        let told = quoted(&Placeholders::read("echo {client}").unwrap(), &values(&[])).unwrap_err();
        assert_eq!(told, "its command has {client}, which is not known");
    }
}
