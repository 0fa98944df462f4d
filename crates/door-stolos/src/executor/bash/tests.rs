//! The behaviour of real shells with values of jobs.

mod fuzz;

use super::*;

fn values(all: &[(&str, &str)]) -> JobValues {
    JobValues::from_pairs(all)
}

fn text(command: &str, value: &str) -> String {
    quoted(&Placeholders::read(command).unwrap(), &values(&[("x", value)])).unwrap().text
}

/// The output of the shell.
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
    assert_eq!(text("echo {x}", "A=b"), "echo \"${KELOS_VALUE_2}\"");
    assert_eq!(text("cat <<'END'\n{x}\nEND", "a  $b"), "cat <<'END'\na  $b\nEND");
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
            let read = Placeholders::read(command).unwrap();
            if quoted(&read, &values(&[("x", value)])).is_err() {
                continue;
            }
            let printed = printed(command, value);
            assert!(!printed.contains("INJECTED\n") || printed.contains("touch"), "{command} with {value}: {printed}");
            assert!(!std::path::Path::new("/INJECTED").exists());
        }
    }
}

#[test]
fn a_value_that_is_not_known_is_told() {
    let told = quoted(&Placeholders::read("echo {client}").unwrap(), &values(&[])).unwrap_err();
    assert_eq!(told, "its command has {client}, which is not known");
}

/// Positions of a value that a shell evaluates there, also where it reads it from a variable.
const EVALUATED: &[&str] = &[
    "echo $(( {x} + 1 ))",
    "echo \"$(( {x} ))\"",
    "echo $(( $(echo {x}) ))",
    "echo $[ {x} ]",
    "(( {x} ))",
    "for (( i = {x}; i < 1; i++ )); do :; done",
    "[[ {x} -eq 1 ]]",
    "[[ 1 -ne \"{x}\" ]]",
    "[[ a = a && ( 1 -lt {x} ) ]]",
    "[[ {x} -le 1 ]]",
    "[[ 1 -gt '{x}' ]]",
    "[[ {x} -ge 1 ]]",
    "[[ -v {x} ]]",
    "test -v {x}",
    "[ -v {x} ]",
    "[ -R {x} ]",
    "[ {x} {y} ]",
    "let {x}",
    "let n={x}",
    "printf -v {x} %s a",
    "printf -v{x} %s a",
    "printf {x} {y}",
    "printf \"a{x}\" {y}",
    "read {x} < /dev/null",
    "read -r n {x} < /dev/null",
    "declare {x}=1",
    "declare -i n={x}",
    "declare -n n={x}",
    "declare -a n={x}",
    "typeset {x}",
    "export {x}",
    "readonly {x}=1",
    "f() {{ local {x}; }}; f",
    "unset {x}",
    "mapfile {x} < /dev/null",
    "readarray -t {x} < /dev/null",
    "getopts a {x}",
    "wait -p {x} 1",
    "a[{x}]=1",
    "a=([{x}]=1)",
    "echo ${{a[{x}]}}",
    "echo \"${{s:{x}}}\"",
    "echo \"${{s:0:{x}}}\"",
    "echo ${{{x}}}",
    "echo ${x}",
    "echo $n{x}",
    "eval {x}",
    "eval \"echo {x}\"",
    ". {x}",
    "source {x}",
    "trap {x} EXIT",
    "bash -c {x}",
    "sh -c \"echo {x}\"",
    "sudo sh -c 'echo {x}'",
    "bash -ec '{x}'",
    "bash -c 'echo $(( $1 ))' _ {x}",
    "echo {x} | sh",
    "bash <<EOF\necho {x}\nEOF\n",
    "bash <<< {x}",
    "ssh host echo {x}",
    "{x}",
    "ev{x} {y}",
    "n_{x}=1",
    "for {x} in a; do :; done",
    "{x}() {{ :; }}",
    "n={x}; echo $(( n + 1 ))",
    "n={x}; m=\"$n\"; [[ $m -eq 1 ]]",
    "n={x}; echo \"${{!n}}\"",
    "n={x}; echo \"${{n@P}}\"",
    "for n in {x}; do echo $(( n )); done",
    "echo {x} | while read n; do echo $(( n )); done",
    "read n <<< {x}; echo $(( n ))",
    "n=$(echo {x}); echo $(( n ))",
    "set -- {x}; echo $(( $1 ))",
    "f() {{ echo $(( $1 )); }}; f {x}",
    "declare -i n; n={x}",
    "RANDOM={x}",
    "PS4={x}; set -x; echo",
    "cat << EOF\n$(( {x} ))\nEOF\n",
    "echo `echo \\$(( {x} ))`",
    "echo \"${{n:-'$(( {x} ))'}}\"",
    "echo $(( x ))",
    "echo $(( $x + 1 ))",
    "[[ $x -eq 1 ]]",
    "[ $x ]",
    "eval \"echo $x\"",
    "bash -c \"echo $x\"",
    "echo ${{!x}}",
    "echo 'open {x}",
];

/// Positions at which any value is only a text.
const PLAIN: &[&str] = &[
    "echo {x}",
    "echo '{x}' \"{x}\" a{x}b",
    "echo \"$(echo \"{x}\")\"",
    "echo `echo {x}`",
    "n={x}; echo \"$n\"",
    "n={x} env",
    "export n={x}",
    "echo $(( 1 + 1 )) {x}",
    "[ {x} = a ]",
    "[ {x} -eq 1 ]",
    "[ -n {x} -a -f {y} ]",
    "[ {x} ]",
    "test -z \"{x}\" || echo {y}",
    "[[ {x} == a && -n {y} ]]",
    "[[ a =~ {x} ]]",
    "printf '%s' {x}",
    "case {x} in {y}) echo a;; *) echo {x};; esac",
    "for n in {x} {y}; do echo \"$n\"; done",
    "if echo {x}; then echo {y}; fi",
    "cat {x} > /dev/null 2>&1",
    "cat < {x}",
    "cat <<EOF\n{x} a\nEOF\n",
    "cat <<'EOF'\n{x} a\nEOF\n",
    "cat <<< {x}",
    "a=({x} {y})",
    "echo ${{n:-{x}}} \"${{n:-{x}}}\" ${{n#{x}}}",
    "sh -c 'echo \"$1\"' _ {x}",
    "set -- {x}; echo \"$1\"",
    "i=0; for n in {x}; do i=$(( i + 1 )); done",
    "./run_{x}.sh {y}",
    "echo {x} | grep -c {y} | while read n; do echo \"$n\"; done",
    "echo \"$x\" $x",
    "# don't {x}\necho {y}",
];

#[test]
fn where_a_shell_evaluates_a_value_only_numbers_stand() {
    let cell = fuzz::Cell::new();
    for command in EVALUATED {
        for value in ["1_a[$(>PWN)]", "a[$(>PWN)]", "$(>PWN)", "-v", "a b"] {
            assert!(cell.made(command, value, value).is_err(), "{command} with {value}");
        }
        if !command.contains("open") {
            let made = cell.made(command, "7", "8");
            assert!(made.is_ok(), "{command} with a number: {made:?}");
        }
    }
}

/// With bash as /bin/sh, `$(( {c} + 1 ))` ran the content of a job id.
#[test]
fn no_value_is_run_by_dash_or_bash_at_any_position() {
    let cell = fuzz::Cell::new();
    let mut draw = fuzz::Draw(0x2026_1122);
    for command in PLAIN {
        for round in 0..12 {
            // No job id has a control character.
            let (x, y) = (draw.value().replace('\n', " "), draw.value());
            let made = cell.made(command, &x, &y).unwrap_or_else(|told| panic!("{command}: {told}"));
            assert_eq!(cell.is_run(&made), None, "round {round} of {command} with {x:?} and {y:?}: {}", made.text);
        }
    }
    for command in EVALUATED {
        for round in 0..4 {
            let (x, y) = (draw.value(), draw.value());
            let Ok(made) = cell.made(command, &x, &y) else { continue };
            assert_eq!(cell.is_run(&made), None, "round {round} of {command} with {x:?} and {y:?}: {}", made.text);
        }
    }
}

#[test]
fn no_value_is_run_in_texts_that_are_drawn() {
    let cell = fuzz::Cell::new();
    let rounds: u64 = std::env::var("KELOS_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    let mut draw = fuzz::Draw(0x6a4b_d581);
    let mut run = 0;
    for round in 0..rounds {
        let command = draw.command(3);
        if Placeholders::read(&command).is_err() {
            continue;
        }
        for _ in 0..6 {
            let (x, y) = (draw.value(), draw.value());
            let Ok(made) = cell.made(&command, &x, &y) else { continue };
            run += 1;
            assert_eq!(cell.is_run(&made), None, "round {round}: {command:?} with {x:?} and {y:?}: {}", made.text);
            break;
        }
    }
    assert!(run > rounds / 20, "only {run} of {rounds} were not refused");
}

/// The test itself has to notice what is run.
#[test]
fn what_is_pasted_is_run_and_noticed() {
    let cell = fuzz::Cell::new();
    let made = cell.made("echo {x:raw}", "$(>PWN)", "").unwrap();
    assert!(cell.is_run(&made).is_some());
    if cell.has_bash() {
        let variables = [("x".to_owned(), "a[$(>PWN)]".to_owned())].into();
        let arithmetic = QuotedText { text: "echo $(( x ))".to_owned(), variables };
        assert_eq!(cell.is_run(&arithmetic), Some("bash"));
    }
}

#[test]
fn numbers_mean_in_arithmetic_what_they_are() {
    let cell = fuzz::Cell::new();
    let printed = |command: &str, value: &str| {
        let made = cell.made(command, value, value).unwrap();
        let shell = std::process::Command::new("/bin/sh").args(["-c", &made.text]).envs(&made.variables).output();
        String::from_utf8(shell.unwrap().stdout).unwrap()
    };
    assert_eq!(printed("echo $(( {x} + 1 ))", "08"), "9\n");
    assert_eq!(printed("echo $(( {x} ))", "000"), "0\n");
    assert_eq!(printed("echo $((3-{x}))", "-5"), "8\n");
    assert_eq!(printed("echo $(( 1{x} - 100 ))", "08"), "8\n");
    assert_eq!(printed("echo {x} '{x}' \"{x}\" $(( $(echo {x} | sed s/^0*//) ))", "08"), "08 08 08 8\n");
    if cell.has_bash() {
        let made = cell.made("s=abcdef; echo \"${{s:{x}}}\"; echo $(( 10#{y} ))", "-2", "08").unwrap();
        let output = std::process::Command::new("bash").args(["-c", &made.text]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "ef\n8\n");
    }
}
