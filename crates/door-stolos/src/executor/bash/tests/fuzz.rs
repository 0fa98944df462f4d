//! Texts for a shell and values for them, drawn at random. Whatever runs a value leaves a file.

use super::*;
use kelos_executors::evaluated;

/// A folder in which a shell works, and what was found in it.
pub(super) struct Cell {
    folder: tempfile::TempDir,
    shells: Vec<&'static str>,
}

impl Cell {
    /// With all shells of this machine that matter; one that is missing is skipped aloud.
    pub(super) fn new() -> Cell {
        let is_there = |shell: &&str| {
            let there = std::process::Command::new(shell).args(["-c", ":"]).status().is_ok();
            if !there {
                eprintln!("skipped: there is no {shell} here");
            }
            there
        };
        let shells = ["dash", "bash"].into_iter().filter(is_there).collect();
        Cell { folder: tempfile::tempdir().unwrap(), shells }
    }

    pub(super) fn has_bash(&self) -> bool {
        self.shells.contains(&"bash")
    }

    /// The command that the executor makes of this text; none if it is refused.
    pub(super) fn made(&self, command: &str, x: &str, y: &str) -> Result<QuotedText, String> {
        let values = JobValues::from_pairs(&[("x", x), ("y", y)]);
        let mut quoted = quoted(&Placeholders::read(command).unwrap(), &values)?;
        quoted.variables.extend([("x".to_owned(), x.to_owned()), ("y".to_owned(), y.to_owned())]);
        match evaluated(&quoted.text, |name| quoted.variables.get(name).map(|value| trust_of(value))) {
            None => Ok(quoted),
            Some(fault) => Err(fault.to_string()),
        }
    }

    /// Runs a text by each shell. Returns the one that ran a value as code.
    pub(super) fn is_run(&self, made: &QuotedText) -> Option<&'static str> {
        self.shells.iter().copied().find(|shell| {
            let mut command = std::process::Command::new(shell);
            // As /bin/sh is called where it is this shell.
            std::os::unix::process::CommandExt::arg0(&mut command, "sh");
            command.args(["-c", &made.text]).envs(&made.variables).current_dir(self.folder.path());
            command.stdin(std::process::Stdio::null()).output().unwrap();
            let mark = self.folder.path().join("PWN");
            let was_run = mark.exists();
            if was_run {
                std::fs::remove_file(mark).unwrap();
            }
            was_run
        })
    }
}

/// Commands in which `W` is a word, and `A` arithmetic.
const COMMANDS: [&str; 46] = [
    "echo W W",
    "n=W",
    "n=W; echo $(( n + 1 ))",
    "export n=W",
    "declare -i n=W",
    "declare -n n=W",
    "local W",
    "printf '%s' W",
    "printf W W",
    "printf -v W y",
    "[ W -eq 1 ]",
    "[ W W ]",
    "[ ! W ]",
    "[ -n W -a W = W ]",
    "[[ W -eq 1 ]]",
    "[[ W = W ]]",
    "[[ W W ]]",
    "[[ -v W ]]",
    "[[ a =~ W ]]",
    "[[ W || ( W ) ]]",
    "test -v W",
    "test W",
    "read W </dev/null",
    "(( A ))",
    "let n=W",
    "eval W",
    "sh -c W",
    "sh -c 'echo $1' _ W",
    "bash -c 'echo $(( $1 ))' _ W",
    "set -- W; echo $(( $1 ))",
    "cat <<< W",
    "unset W",
    "a[A]=1",
    "a=(W [A]=W)",
    "W",
    "trap W EXIT",
    "env n=W bash -c 'echo $((n))'",
    "command eval W",
    ". W",
    "n=W true",
    "mapfile W </dev/null",
    "getopts a W",
    "alias e=W",
    "n=W; echo \"${{n@P}}\"",
    "nohup W",
    "readonly n=W",
];
/// Commands in which `C` is another one, and `D` arithmetic in quotes.
const COMPOUNDS: [&str; 23] = [
    "if C; then C; fi",
    "{{ C; }}",
    "( C )",
    "for n in W; do C; echo $(( n )); done",
    "echo W | while read n; do echo $(( n )); done",
    "case W in W) C;; (*) C;; esac",
    "C && C",
    "C | C",
    "C # don't {x}\nC",
    "f() {{ echo $(( $1 )); }}; f W",
    "cat <<EOF\n{x}\nD\nEOF\nC",
    "cat <<'EOF'\n{x}\n{y} a\nEOF\nC",
    "bash <<EOF\necho {x}\nEOF\nC",
    "echo W | sh",
    "C\nC",
    "for (( n={x}; n<1; n++ )); do C; done",
    "while C; do break; done",
    "! C",
    "case {x} in a) C;; esac; C",
    "n=$(C); echo $(( n ))",
    "cat <<-\\X\n\t{x}\n\tX\nC",
    "a=1 C",
    "read n <<< W; echo $(( n ))",
];

/// Draws by a fixed rule.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// A value that leaves a file where it, or a part of it, is run.
    pub(super) fn value(&mut self) -> String {
        let parts = [
            "$(>PWN)",
            "`>PWN`",
            ";>PWN;",
            "\n>PWN\n",
            "a[$(>PWN)]",
            "x[`>PWN`]",
            "1+a[$(>PWN)]",
            "-v",
            "-va[$(>PWN)]",
            "%n",
            "=",
            "-eq",
            "]]",
            "))",
            ")",
            "}",
            "'",
            "\"",
            "\\",
            " ",
            "&",
            "|",
            "EOF",
            "#",
            "([$(>PWN)]=1)",
            "() { >PWN; }",
            "@",
            "1",
            "-c",
            "eval",
            "a",
            "!",
            "-p",
            "-i",
            "(",
            "${a[$(>PWN)]}",
            "$x",
            "\t",
        ];
        let whole = self.below(3) == 0;
        let count = if whole { 1 } else { 1 + self.below(3) };
        (0..count).map(|_| self.one(&parts)).collect()
    }

    /// A text with values at random positions.
    pub(super) fn command(&mut self, depth: usize) -> String {
        let text = if depth == 0 || self.below(3) == 0 { self.one(&COMMANDS) } else { self.one(&COMPOUNDS) };
        self.filled(text, depth)
    }

    fn word(&mut self, depth: usize) -> String {
        const LEAVES: [&str; 24] = [
            "{x}",
            "{y}",
            "'{x}'",
            "\"{x}\"",
            "a{x}b",
            "\\{x}",
            "$x",
            "\"$x\"",
            "${{x}}",
            "$'{x}'",
            "${x}",
            "\"'{x}'\"",
            "'\"'{x}'\"'",
            "\"\\\"{x}\"",
            "#{x}",
            "~{x}",
            "{{a,{x}}}",
            "$a{x}",
            "{x}=1",
            "n={x}",
            "\\\\{x}",
            "\"a\"{x}",
            "${{!x}}",
            "$'a\\'{x}'",
        ];
        const NESTS: [&str; 16] = [
            "$(C)",
            "\"$(C)\"",
            "${{z:-W}}",
            "\"${{z:-W}}\"",
            "\"${{z:-'W'}}\"",
            "$(( 1 + A ))",
            "`C`",
            "${{s:A}}",
            "${{a[A]}}",
            "$[ A ]",
            "\"$(( A ))\"",
            "<(C)",
            "${{z:=W}}",
            "${{z#W}}",
            "\"`C`\"",
            "\"${{z%\"W\"}}\"",
        ];
        let text = if depth == 0 || self.below(2) == 0 { self.one(&LEAVES) } else { self.one(&NESTS) };
        self.filled(text, depth)
    }

    fn arithmetic(&mut self, depth: usize) -> String {
        const TEXTS: [&str; 11] =
            ["{x}", "n", "x", "$x", "1", "\"{x}\"", "({x})", "a[A]", "$(C)", "n = A", "${{x}} + A"];
        let bound = if depth == 0 { 7 } else { TEXTS.len() };
        let text = self.one(&TEXTS[..bound]);
        self.filled(text, depth)
    }

    fn filled(&mut self, text: &str, depth: usize) -> String {
        let mut filled = String::new();
        let deeper = depth.saturating_sub(1);
        for (at, letter) in text.char_indices() {
            let alone = |at: usize| !text[at + 1..].starts_with(|next: char| next.is_ascii_alphabetic());
            let begins = at == 0 || !text[..at].ends_with(|before: char| before.is_ascii_alphabetic() || before == 'O');
            match letter {
                'W' if begins && alone(at) => filled += &self.word(deeper),
                'A' if begins && alone(at) => filled += &self.arithmetic(deeper),
                'C' if begins && alone(at) => filled += &self.command(deeper),
                'D' if begins && alone(at) => filled += &format!("$(( {} )) \"", self.arithmetic(deeper)),
                letter => filled.push(letter),
            }
        }
        filled
    }
}
