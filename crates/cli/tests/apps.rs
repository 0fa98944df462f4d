//! Apps beside scripts, from the command line.

use crate::support::{Folder, run};

const TASKS: &str = r#"{
  "day": {"bash_cmd": "echo {date}"},
  "sum": {"bash_cmd": "echo {client}", "depends_on": {"app_name": ["days"]}}
}"#;

#[test]
fn a_folder_of_apps_is_checked() {
    let folder = Folder::with(&[]);
    folder.write("tasks.json", TASKS);
    folder.write("identifiers.json", "{\"date\": \"date\"}");
    let dir = folder.text();
    let found = run(&["check", dir, "--template", "{date}"]);
    assert_eq!(found.code, 1, "{}{}", found.out, found.err);
    let expected = "tasks.json:3:23: bash_cmd of sum has {client}, expected one of date, app_name, job_id: write {{ and }} for \
                    braces that are meant as they are [bad-app]\n";
    assert!(found.out.starts_with(expected), "{}", found.out);
    assert!(found.out.ends_with("^\n2 workflows in 1 file: 1 problem\n"), "{}", found.out);
    folder.write("tasks.json", &TASKS.replace("{client}", "{job_id}"));
    let found = run(&["check", dir, "--template", "{date}"]);
    assert!(found.out.contains("sum, group default, member 1: no workflow is named \"days\""), "{}", found.out);
    folder.write("tasks.json", &TASKS.replace("{client}", "{job_id}").replace("days", "day"));
    assert_eq!(run(&["check", dir, "--template", "{date}"]).ok(), "2 workflows in 1 file: no problems\n");
    let found = run(&["check", dir, "--template", "{date"]);
    assert!(found.err.contains("failed to use --template: \"{date\" is no template"), "{}", found.err);
}

#[test]
fn a_password_in_the_address_of_redis_is_refused() {
    let folder = Folder::with(&[]);
    let dir = folder.text();
    let found = run(&["check", dir, "--tasks-redis", "redis://:hidden@127.0.0.1:1"]);
    assert!(
        found.err.contains("a password in it would be seen by everyone") && !found.err.contains("hidden"),
        "{}",
        found.err
    );
}

#[test]
fn apps_may_be_what_a_command_prints() {
    let folder = Folder::with(&[("apps.json", TASKS), ("identifiers.json", "{\"date\": \"date\"}")]);
    let check = |more: &[&str]| folder.run(&[&["check", "--template", "{date}"], more].concat());
    let broken = check(&["--tasks-command", "cat apps.json"]);
    assert!(
        broken.out.starts_with("exec:cat apps.json:3:23: bash_cmd of sum has {client}, expected"),
        "{}",
        broken.out
    );
    folder.write("apps.json", &TASKS.replace("{client}", "{job_id}").replace("days", "day"));
    assert_eq!(check(&["--tasks-command", "cat apps.json"]).ok(), "2 workflows in 1 file: no problems\n");
    let failing = check(&["--tasks-command", "cat missing.json"]);
    assert!(failing.out.contains("exec:cat missing.json prints no apps: the command failed"), "{}", failing.out);
    let both = check(&["--tasks-command", "true", "--tasks-redis", "redis://h"]).fails(2);
    assert!(both.contains("cannot be used with"), "{both}");
}
