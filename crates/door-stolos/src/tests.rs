//! The answers of Stolos, and the inputs that it doesn't accept.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kelos_model::WorkflowId;

use kelos_model::shell::{ShellText, Trust};
use kelos_model::workflow::CatchUp;
use kelos_sandbox::apps::{Apps, Settings};

use super::{Tasks, apps, read};

fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stolos").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn told(text: &str, settings: &Settings) -> Vec<String> {
    let mistakes = read(text, settings).map_or_else(|mistakes| mistakes, |tasks| tasks.mistakes);
    mistakes.iter().map(ToString::to_string).collect()
}

/// All texts that an expression with braces expands to.
fn each(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else { return vec![text.to_owned()] };
    let (choices, after) = rest.split_once('}').unwrap();
    choices.split(',').flat_map(|choice| each(&format!("{before}{choice}{after}"))).collect()
}

fn answered(tasks: &Tasks, question: &str) -> Vec<String> {
    let (direction, job) = question.split_once(' ').unwrap();
    let (app, id) = job.split_once('/').unwrap();
    let app = WorkflowId::new(app).unwrap();
    let words = |job: &kelos_model::jobs::Job, group: &str| format!("{}/{}:{group}", job.workflow, job.id);
    match direction {
        "parents" => {
            let groups = tasks.graph.parents(&app, id).unwrap();
            groups.iter().flat_map(|found| found.jobs.iter().map(|job| words(job, &found.group))).collect()
        }
        "children" => {
            tasks.graph.children(&app, id).unwrap().jobs.iter().map(|(job, group)| words(job, group)).collect()
        }
        other => panic!("no question is called {other}"),
    }
}

fn hold(folder: &str, settings: &Settings) {
    let tasks = read(&fixture(&format!("{folder}/tasks.json")), settings).unwrap();
    let vectors = fixture(&format!("{folder}/vectors.txt"));
    let lines: Vec<&str> = vectors.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(lines.len() > 15, "the vectors are there");
    for line in lines {
        let (question, answer) = line.split_once(" ->").unwrap();
        let expected: Vec<String> = answer.split_whitespace().flat_map(each).collect();
        let found = answered(&tasks, question);
        assert_eq!(found.iter().collect::<BTreeSet<_>>(), expected.iter().collect::<BTreeSet<_>>(), "{question}");
        assert_eq!(found.len(), expected.len(), "{question}: each once");
    }
}

#[test]
fn variables_of_an_app_may_be_secrets() {
    let run = |env: &str| {
        let app = format!(r#"{{"a": {{"job_id": "{{date}}", "bash_cmd": "true", "runAs": "etl", "env": {env}}}}}"#);
        apps(&app, "tasks.json", &Settings::new(None, None).unwrap())
    };
    let read = run(r#"{"DB": {"secret": "env:KELOS_SECRET_DB"}, "A": 1}"#).unwrap();
    let settings = &read.workflows[0].job.settings;
    assert_eq!(settings["env"]["DB"], serde_json::json!({"secret": "env:KELOS_SECRET_DB"}));
    assert_eq!(settings["runAs"], "etl");
    let wrong = |env: &str| run(env).unwrap().mistakes[0].what.clone();
    let told = wrong(r#"{"DB": {"secret": "hunter2"}}"#);
    assert!(told.contains("DB in env of a: expected the source of a secret, not the secret itself"), "{told}");
    assert!(wrong(r#"{"DB": {"a": 1}}"#).contains("DB is an object, expected a text, a number, true or false"));
}

#[test]
fn the_example_graph_answers_as_stolos_does() {
    let identifiers = fixture("example/identifiers.json");
    hold("example", &Settings::new(Some("{date}_{client_id}_{collection_name}"), Some(&identifiers)).unwrap());
}

#[test]
fn the_examples_of_the_document_hold_as_written() {
    let settings = Settings::new(Some("{date}_{client_id}"), None).unwrap();
    hold("readme", &settings);
    let run = apps(&fixture("readme/tasks.json"), "tasks.json", &settings).unwrap();
    assert_eq!(run.workflows[0].job.settings["shell"], "echo {app_name} is Running App 1 with {job_id}");
}

#[test]
fn everything_wrong_in_a_file_is_told_with_its_place() {
    let text = r#"{
  "a": {"job_id": "{date}", "bash_cmd": 7, "colour": "red"},
  "a/b": {"job_id": "{date}"},
  "b": {"job_id": "{date}{x}"},
  "c": {
    "job_id": "{date}_{x}",
    "autofill_values": {"x": "5:5", "y": [1]},
    "depends_on": {
      "first": [{"app_name": ["a", "nobody"], "x": ["1"]}, {"x": ["1"]}],
      "second": "a",
      "third": {"app_name": ["a"], "x": "some", "_func": "my.module.f"}
    },
    "valid_if_or": {"z": [1], "x": {}}
  },
  "c": 5
}"#;
    let expected = [
        "2:41: bash_cmd of a is a number, expected a text",
        "3:3: workflow id can't contain slash: \"a/b\"",
        "4:19: \"{date}{x}\" is no template of job ids: nothing tells where date ends and x begins",
        "5:3: c: it lists values of y, which is no part of {date}_{x}",
        "7:30: x is \"5:5\", which is empty: the end is excluded",
        "9:17: c, group first, member 1: no workflow is named \"nobody\"",
        "9:60: app_name is missing, expected a list of apps",
        "10:7: second is a text, expected a group, or app_name beside it",
        "11:41: x is a text, expected a list, or \"all\"",
        "11:49: functions of Python can't be called: list the values, or write both ways in a script",
        "13:21: valid_if_or has z, which is no part of {date}_{x}",
        "13:36: x is an object, expected a list",
        "15:3: the file has \"c\" twice",
        "15:8: c is a number, expected an object",
    ];
    assert_eq!(told(text, &Settings::default()), expected);
    assert_eq!(told("{\"a\": {}}", &Settings::default()), ["1:2: a has no job_id, and no default template was given"]);
    assert_eq!(
        told("{\"a\": {\"job_id\": []}}", &Settings::default()),
        ["1:18: the template of job ids is a list, expected a text"]
    );
    let none = r#"{"a": {"job_id": "{d}"}, "b": {"job_id": "{d}", "depends_on": {"app_name": ["a"], "job_id": []}}}"#;
    let none = told(none, &Settings::default());
    assert_eq!(none.len(), 1, "{none:?}");
    assert!(none[0].ends_with("b, group default, member 1: its list of job_id is empty"), "{none:?}");
    assert_eq!(told("", &Settings::default()), ["1:1: the file is empty, expected an object of apps by name"]);
    assert_eq!(told("{\"a\": {\"\"b\"\": 1}}", &Settings::default()).len(), 1);
    let round = r#"{"a": {"job_id": "{d}", "depends_on": {"app_name": ["b"]}}, "b": {"job_id": "{d}", "depends_on": {"app_name": ["a"]}}}"#;
    assert_eq!(told(round, &Settings::default()), ["1:2: a: it waits for itself: a waits for b waits for a"]);
}

#[test]
fn keys_that_nothing_reads_are_warned_about() {
    let tasks = read(r#"{"a": {"job_id": "{d}", "team": "x"}}"#, &Settings::default()).unwrap();
    let warned: Vec<String> = tasks.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warned, ["1:25: a has the key \"team\", which nothing reads"]);
}

#[test]
fn keys_that_are_mistyped_are_mistakes() {
    let found = told(r#"{"a": {"job_id": "{d}", "dependson": {}}}"#, &Settings::default());
    assert_eq!(found, ["1:25: a has the key \"dependson\", which nothing reads; did you mean depends_on?"]);
}

fn run(text: &str) -> Result<Apps, Vec<String>> {
    let settings = Settings::new(None, Some(r#"{"date": "date", "n": "integer"}"#)).unwrap();
    let apps = apps(text, "tasks.json", &settings).unwrap();
    if apps.mistakes.is_empty() { Ok(apps) } else { Err(apps.mistakes.iter().map(ToString::to_string).collect()) }
}

#[test]
fn an_app_is_a_workflow_with_its_job_and_its_limits() {
    let text = r#"{
      "a": {"job_id": "{date}_{n}", "autofill_values": {"n": [1, 2]}, "bash_cmd": "echo {date} {n:raw} {year} {{}}",
            "concurrency": 3, "max_retry": 1, "timeout": 60, "pools": [{"pool": "db", "size": 4, "permits": 2}],
            "feed": {"identifier": "date", "cron": "0 0 3 * * ?", "zone": "Europe/Berlin"},
            "runs_on": ["gpu", "eu"], "on_lost": "wait 30m",
            "valid_if_or": {"n": ["01"]}},
      "b": {"job_id": "{n}", "job_type": "pyspark", "pymodule": "my.module", "spark_conf": {"spark.x": 1},
            "env": {"A": "b"}, "env_from_os": ["HOME"], "uris": ["lib.zip"], "read_fp": "/in/{n}"}
    }"#;
    let apps = run(text).unwrap();
    let [a, b] = &apps.workflows[..] else { panic!("two apps") };
    assert_eq!((a.project.as_str(), a.source.file.as_str(), a.source.line), ("tasks", "tasks.json", 2));
    assert_eq!((a.concurrency, a.retry.count, a.pools[0].permits), (Some(3), 0, 2));
    assert_eq!(a.job.executor, "bash");
    assert_eq!(a.job.settings["shell"], "echo {date} {n:raw} {year} {{}}");
    assert_eq!(a.job.settings["timeoutSeconds"], 60);
    assert_eq!(a.job.runs_on.iter().map(ToString::to_string).collect::<Vec<_>>(), ["eu", "gpu"]);
    assert_eq!(a.job.on_lost, kelos_model::workers::LossPolicy::Wait(1800));
    let keys = a.keys.jobs().unwrap();
    assert_eq!(&*keys.valid.as_ref().unwrap().values["n"][0], "1");
    assert_eq!(&*keys.feed.as_ref().unwrap().identifier, "date");
    assert_eq!((b.concurrency, b.retry.count, b.source.line), (None, 4, 7));
    assert_eq!(b.job.executor, "pyspark");
    let settings = serde_json::json!({"module": "my.module", "conf": {"spark.x": 1}, "env": {"A": "b"}, "envFromOs": ["HOME"],
        "uris": ["lib.zip"], "read": "/in/{n}"});
    assert_eq!(serde_json::Value::Object(b.job.settings.clone()), settings);
    assert_eq!(apps.warnings, []);
}

#[test]
fn a_feed_says_which_past_times_open_jobs() {
    let catch_up = |more: &str| {
        let feed =
            format!(r#""autofill_values": {{"n": [1]}}, "feed": {{"identifier": "date", "cron": "0 3 * * *"{more}}}"#);
        let read = run(&format!("{{\"a\": {{\"job_id\": \"{{date}}_{{n}}\", \"bash_cmd\": \"true\", {feed}}}}}"));
        read.map(|apps| (apps.workflows[0].catch_up, apps.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()))
    };
    let policy = |word: &str| catch_up(&format!(r#", "catchUp": "{word}""#)).unwrap().0;
    assert_eq!(["all", "latest", "skip"].map(policy), [CatchUp::All, CatchUp::Latest, CatchUp::Skip].map(Some));
    assert_eq!(catch_up("").unwrap().0, Some(CatchUp::Latest), "it begins with the first time after it was first seen");
    let without = run(r#"{"a": {"job_id": "{date}", "bash_cmd": "true"}}"#).unwrap();
    assert_eq!(without.workflows[0].catch_up, None, "nothing is said of what has no times");
    for wrong in [r#""none""#, "true", "[]", "null"] {
        let told = catch_up(&format!(r#", "catchUp": {wrong}"#)).unwrap_err();
        assert!(
            told[0].contains("catchUp in feed of a: ") && told[0].contains(r#"expected "all", "latest" or "skip""#),
            "{told:?}"
        );
    }
    let told = catch_up(r#", "catchup": "all""#).unwrap_err();
    assert!(
        told[0].ends_with("feed of a has the key \"catchup\", which nothing reads; did you mean catchUp?"),
        "{told:?}"
    );
    let warned = catch_up(r#", "owner": "me""#).unwrap().1;
    assert!(warned[0].ends_with("which nothing reads; there are identifier, cron, zone, catchUp"), "{warned:?}");
}

#[test]
fn an_app_says_which_paths_its_jobs_write() {
    let writes = |paths: &str| {
        run(&format!("{{\"a\": {{\"job_id\": \"{{date}}_{{n}}\", \"bash_cmd\": \"true\", \"writes\": {paths}}}}}"))
            .map(|apps| apps.workflows[0].writes.clone())
    };
    let read = writes(r#"["/out/{date}/{n}", "s3://b/${year}/{month}/${n}", "/{{x}}/{n:raw}"]"#).unwrap();
    assert_eq!(read, ["/out/${date}/${n}", "s3://b/${year}/${month}/${n}", "/{x}/${n}"]);
    assert_eq!(writes("[]").unwrap(), [""; 0]);
    let told = |paths: &str| writes(paths).unwrap_err().swap_remove(0);
    assert!(told(r#"["/out/{dat}"]"#).contains("writes of a: \"/out/{dat}\" has {dat}, expected one of date, n"));
    assert!(told(r#"["/out/{job_id}"]"#).contains("has {job_id}"));
    assert!(told(r#"["/out/{date"]"#).contains("writes of a: a brace is not closed"));
    assert!(told(r#"["/out/*"]"#).contains("writes of a: expected the path of a file or a folder, not the pattern"));
    assert!(told(r#""/out/{date}""#).contains("writes of a is a text, expected a list"));
    assert!(told("[[]]").contains("a value of writes of a"));
    let no_day = run(r#"{"a": {"job_id": "{n}", "bash_cmd": "true", "writes": ["/{year}"]}}"#).unwrap_err();
    assert!(no_day[0].contains("has {year}, expected one of n"), "{no_day:?}");
}

/// Stolos read its file only when a job was asked about, and a job with a bad placeholder was retried again and again.
#[test]
fn fault_12_what_would_fail_at_run_time_is_a_mistake_at_load() {
    let told = |app: &str| run(&format!("{{\"a\": {{\"job_id\": \"{{date}}_{{n}}\", {app}}}}}")).unwrap_err();
    let expected = "1:44: bash_cmd of a has {client}, expected one of date, n, app_name, job_id: write {{ and }} for braces \
                    that are meant as they are";
    assert_eq!(told(r#""bash_cmd": "echo {client}""#), [expected]);
    assert!(told(r#""bash_cmd": "awk '{print}' {n""#)[0].contains("bash_cmd of a: a brace is not closed"));
    assert_eq!(told(r#""max_retry": 0"#), ["1:45: max_retry of a is 0, expected a whole number >= 1"]);
    assert_eq!(told(r#""concurrency": "many""#), ["1:47: concurrency of a is \"many\", expected a whole number >= 1"]);
    assert!(told(r#""job_type": "pyspark""#)[0].starts_with("1:2: a has no pymodule"));
    assert!(told(r#""valid_if_or": {"_func": "my.f"}"#)[0].contains("valid_if_or calls a function of Python"));
    assert!(told(r#""pools": [{"pool": "x", "size": 1, "permits": 2}]"#)[0].contains("1 to \"size\" permits"));
    assert!(told(r#""runs_on": ["a b"]"#)[0].contains("runs_on of a"));
    assert!(told(r#""runs_on": "gpu""#)[0].contains("such as [\"gpu\", \"eu\"]"));
    assert!(told(r#""on_lost": "wait""#)[0].contains("expected \"retry\", \"end\" or a wait such as \"wait 30m\""));
    assert!(told(r#""feed": {"identifier": "n", "cron": "0 0 3 * * ?"}"#)[0].contains("n is no date of {date}_{n}"));
    assert!(told(r#""feed": {"identifier": "date", "cron": "0 0 3 * * ?"}"#)[0].contains("which values of n to open"));
    let cron = r#""autofill_values": {"n": [1]}, "feed": {"identifier": "date", "cron": "daily"}"#;
    assert!(told(cron)[0].contains("feed of a: "));
}

#[test]
fn commands_may_name_the_options_of_the_runner() {
    let text =
        r#"{"a": {"job_id": "{n}", "bash_cmd": "echo {max_retry} {tasks_json} {qb_zookeeper_timeout} {watch}"}}"#;
    assert_eq!(run(text).unwrap().workflows.len(), 1);
}

#[test]
fn a_nul_has_its_place() {
    assert_eq!(told("{\n  \"a\": \0}", &Settings::default()), ["2:8: not JSON: there is a NUL character"]);
    let escaped = "{\"a\": {\"job_id\": \"{n}\",\n \"bash_cmd\": \"echo \\u0000\"}}";
    let why = "2:14: bash_cmd of a has a NUL character, which no text can have that a program is given";
    assert_eq!(run(escaped).unwrap_err(), [why]);
}

#[test]
fn fault_5_an_app_without_a_command_is_warned_about() {
    let apps = run(r#"{"a": {"job_id": "{date}"}}"#).unwrap();
    let warned: Vec<String> = apps.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warned, ["1:2: a has no bash_cmd: each of its jobs fails, because there is nothing to run"]);
}

#[test]
fn own_kinds_of_jobs_are_programs_in_the_folder_of_plugins_and_nowhere_else() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let program = |path: PathBuf, mode| {
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    program(plugins.join("mine"), 0o755);
    program(plugins.join("text"), 0o644);
    let fifo = std::process::Command::new("mkfifo").args(["-m", "755"]).arg(plugins.join("fifo")).status();
    assert!(fifo.unwrap().success());
    program(folder.path().join("outside"), 0o755);
    symlink(folder.path().join("outside"), plugins.join("link")).unwrap();
    let settings = Settings { folder: Some(folder.path().to_owned()), ..Settings::default() };
    let read = |name: &str| {
        let text = format!("{{\"a\": {{\"job_id\": \"{{n}}\", \"job_type\": \"{name}\", \"own\": 1}}}}");
        let apps = apps(&text, "tasks.json", &settings).unwrap();
        if apps.mistakes.is_empty() { Ok(apps) } else { Err(apps.mistakes[0].what.clone()) }
    };
    let Apps { mut workflows, warnings: warned, .. } = read("mine").unwrap();
    let good = workflows.remove(0);
    assert_eq!(good.job.executor, "plugin");
    assert_eq!(good.job.settings["config"]["own"], 1);
    assert_eq!(warned, []);
    let told = |name: &str| read(name).unwrap_err();
    assert!(told("../outside").ends_with("that is no name of a file"));
    assert!(told("link").ends_with("leads out of its folder"));
    assert!(told("text").ends_with("can't be executed"));
    assert!(told("fifo").ends_with("is no file"));
    let nobody = "job_type of a is \"nobody\", expected bash, pyspark, a program in plugins/, or the import path of a module of Python, \
                  such as jobs.count: there is no";
    assert!(told("nobody").starts_with(nobody));
    program(plugins.join("count.sh"), 0o755);
    let settings_of = |name: &str| read(name).unwrap().workflows.remove(0).job.settings;
    assert_eq!(settings_of("count.sh")["plugin"], "count.sh");
    assert_eq!(settings_of("jobs.count_2")["module"], "jobs.count_2");
    assert!(told("jobs.2").contains("such as jobs.count"));
    assert!(told("jobs..count").contains("such as jobs.count"));
}

/// A job id was run where /bin/sh is bash, by arithmetic and wherever a name is expected.
#[test]
fn a_value_that_a_shell_would_evaluate_is_refused_unless_it_is_a_number() {
    let command = |command: &str| {
        let app = serde_json::json!({"a": {"job_id": "{date}_{n}_{c}_{k}", "bash_cmd": command}}).to_string();
        let kinds = r#"{"date": "date", "n": "integer", "k": ["one", "two"]}"#;
        let read = apps(&app, "tasks.json", &Settings::new(None, Some(kinds)).unwrap());
        let mistakes = read.unwrap().mistakes;
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>()) }
    };
    let told = |text: &str| command(text).unwrap_err().join("\n");
    assert_eq!(
        told("echo $(( {c} + 1 ))"),
        "1:48: bash_cmd of a: {c} stands in arithmetic, where a shell may run what is in it, expected an integer or a date: say so \
         of c in identifiers.json, or among the identifiers of a script; {c:raw} pastes it, whatever it is"
    );
    assert!(told("n={c}; (( n > 1 ))").contains("$n, which holds {c}, stands in arithmetic"));
    assert!(told("[[ $c -eq 1 ]]").contains("$c stands in a comparison of numbers"));
    assert!(told("[[ $KELOS_SLOT -eq 1 ]]").contains("$KELOS_SLOT stands in a comparison"));
    assert!(told("test -v {k}").contains("{k} stands in the name of a variable"));
    assert!(told("echo $(( {job_id} ))").contains("{job_id} stands in arithmetic"));
    assert!(told("sh -c 'echo {c}'").contains("expected an integer, a date or one of a list of plain words"));
    for fine in [
        "echo $(( {n} + {day} )) $(( {date} )) $(( n + day ))",
        "[[ {n} -eq 1 ]] && let m={n}",
        "sh -c 'echo {k} {n}'",
        "./run_{k} {c} \"$c\"",
        "echo $(( {c:raw} ))",
        "echo {app_name} {job_id} > {c}",
    ] {
        assert_eq!(command(fine), Ok(()), "{fine}");
    }
}

/// A text that means harm to its reader, or is merely broken, is read to its end.
#[test]
fn any_text_for_a_shell_is_read() {
    let nested = [
        "$(",
        "$((",
        "`",
        "\"",
        "${a:-",
        "((",
        "[[ ",
        "case x in x) ",
        "eval ",
        "command ",
        "a[",
        "<<A\n",
        "a=(",
        "\\",
        "'",
    ];
    for part in nested {
        let text = ShellText::of_variables(&format!("{}x", part.repeat(2_000)));
        text.faults(|_| Trust::Free, |_| Some(Trust::Free));
    }
}
