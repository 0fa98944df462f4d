//! `kelos.workflow`: the same definitions as `celos.defineWorkflow`, with defaults of its own.

use kelos_model::Workflow;
use kelos_model::retry::OnUnknown;
use kelos_model::workflow::{CatchUp, Source, WaitStart};

use crate::support::{Folder, ids};

/// The workflows of a text, but for where they are defined.
#[track_caller]
fn defined(text: &str) -> Vec<Workflow> {
    let folder = Folder::new();
    folder.write("a.js", text);
    let loaded = folder.load();
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    loaded.workflows.iter().map(|one| Workflow { source: Source::default(), ..(**one).clone() }).collect()
}

/// The problems of a call with these fields, without their place: where an unknown field stands, or else the call begins.
#[track_caller]
fn refused(fields: &str) -> Vec<String> {
    let folder = Folder::new();
    let call = format!("  kelos.workflow(\"w\", {{{fields}}});");
    folder.write("a.js", &format!("\n{call}\n"));
    let loaded = folder.load();
    assert!(loaded.workflows.is_empty(), "{fields}: {:?}", ids(&loaded));
    let words = |problem: String| {
        let field =
            problem.split_once("unknown field '").and_then(|(_, rest)| rest.split_once('\'')).map(|(name, _)| name);
        let column = field.and_then(|name| call.find(&format!("{name}:"))).map_or(3, |at| at + 1);
        let rest = problem.strip_prefix(&format!("a.js:2:{column}: ")).map(str::to_owned);
        rest.unwrap_or_else(|| panic!("{fields}: not at its place: {problem}"))
    };
    loaded.problems.iter().map(|problem| words(problem.to_string())).collect()
}

#[test]
fn periods_are_waited_for_by_either_builder() {
    let text = r#"
        const hourly = kelos.workflow("hourly", { schedule: celos.calendar("hourly"), shell: "true" });
        kelos.workflow("daily", { schedule: celos.calendar("daily"), after: celos.covers(hourly), shell: "true" });
        kelos.workflow("late", {
            schedule: celos.calendar("daily"), shell: "true",
            after: ["daily", celos.covers(hourly, {from: "-1d", to: 90})]
        });"#;
    let triggers: Vec<String> = defined(text).iter().map(|one| one.trigger.to_string()).collect();
    assert_eq!(triggers, ["covers(hourly)", "always", "and(success(daily), covers(hourly, from=-1d, to=90s))"]);
    let folder = Folder::new();
    folder.write("a.js", r#"celos.covers("hourly", {from: "1 day"});"#);
    let problem = folder.load().problems[0].to_string();
    assert!(problem.contains("celos.covers: from: expected a length of time such as \"-1d\""), "{problem}");
}

#[test]
fn a_project_says_once_what_it_shares_and_all_its_definitions_carry_it() {
    let text = r#"
        kelos.workflow("before", { schedule: "hourly", shell: "true" });
        kelos.project({ shares: { reports: { sees: { runs: ["before"] } }, "*": { sends: { signals: ["go"] } } } });
        kelos.workflow("after", { schedule: "hourly", shell: "true" });"#;
    let declared = serde_json::json!({"*": {"sends": {"signals": ["go"]}}, "reports": {"sees": {"runs": ["before"]}}});
    for workflow in defined(text) {
        assert_eq!(serde_json::to_value(&workflow.shares).unwrap(), declared, "{}", workflow.id);
    }
    for (text, expected) in [
        ("kelos.project({shares: {a: {see: {}}}});", "failed to read what the project shares: unknown field `see`"),
        ("kelos.project({});", "kelos.project: 'shares' is missing"),
        ("kelos.project({share: {}});", "kelos.project: unknown field 'share'"),
        (
            "kelos.project({shares: {}}); kelos.project({shares: {}});",
            "the file has said already what its project shares",
        ),
    ] {
        let folder = Folder::new();
        folder.write("a.js", text);
        let problem = folder.load().problems[0].to_string();
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn both_builders_make_the_same_definition() {
    let own = r#"
        const extract = kelos.workflow("extract", {
            schedule: "hourly",
            command: ["bin/extract", "${hour}"], cwd: "/srv", timeoutSeconds: 60,
            catchUp: "all"
        });
        kelos.workflow("load", {
            schedule: "0 6 * * 1-5", timeZone: "Europe/Berlin", daylightSaving: {gap: "skip"},
            after: [extract, "other"],
            trigger: celos.fileCheckTrigger("/in/${day}"),
            constraints: [celos.timeWindow("22:00", "06:00")],
            job: celos.httpExternalService({url: "http://jobs/v1"}),
            concurrency: 8, pools: [celos.pool("db", 4, 2)],
            retry: {count: 3, delaySeconds: 5, backoff: "exponential"},
            writes: ["/out/${day}"], startTime: "2026-01-01T00:00Z", batch: {size: 6, delay: "10m"},
            waitTimeoutSeconds: 60,
            description: "loads", url: "https://example.org/", tags: ["a"], contacts: [{name: "Ann"}]
        });
        kelos.workflow("report", { schedule: celos.dependentSchedule("load"), after: "load", shell: "echo $day" });"#;
    let celos = r#"
        celos.defineWorkflow({
            id: "extract",
            schedule: celos.hourlySchedule(),
            schedulingStrategy: celos.serialSchedulingStrategy(),
            trigger: celos.alwaysTrigger(),
            externalService: celos.commandExternalService({command: ["bin/extract", "${hour}"], cwd: "/srv", timeoutSeconds: 60}),
            catchUp: "all", retry: {count: 0, onUnknown: "again"}
        });
        celos.defineWorkflow({
            id: "load",
            schedule: celos.cronSchedule("0 6 * * 1-5"), timeZone: "Europe/Berlin", daylightSaving: {gap: "skip"},
            trigger: celos.andTrigger(celos.successTrigger("extract"), celos.successTrigger("other"), celos.fileCheckTrigger("/in/${day}")),
            constraints: [celos.timeWindow("22:00", "06:00")],
            externalService: celos.httpExternalService({url: "http://jobs/v1"}),
            schedulingStrategy: celos.serialSchedulingStrategy(8), pools: [celos.pool("db", 4, 2)],
            retry: {count: 3, delaySeconds: 5, backoff: "exponential"},
            writes: ["/out/${day}"], startTime: "2026-01-01T00:00Z", catchUp: "latest", batch: {size: "6", delay: 600},
            waitTimeoutSeconds: 60, waitTimeoutFrom: "opening",
            description: "loads", url: "https://example.org/", tags: ["a"], contacts: [{name: "Ann"}]
        });
        celos.defineWorkflow({
            id: "report",
            schedule: celos.dependentSchedule("load"),
            schedulingStrategy: celos.serialSchedulingStrategy(),
            trigger: celos.successTrigger("load"),
            externalService: celos.commandExternalService({shell: "echo $day"}),
            catchUp: "latest", retry: {count: 0, onUnknown: "again"}
        });"#;
    assert_eq!(defined(own), defined(celos));
}

#[test]
fn its_defaults_are_kelos_s_and_those_of_celos_stay() {
    let common = r#"waitTimeoutSeconds: 9"#;
    let own = defined(&format!("kelos.workflow('w', {{schedule: 'daily', shell: 'true', {common}}});"));
    assert_eq!((own[0].catch_up, own[0].wait_from), (Some(CatchUp::Latest), WaitStart::Opening));
    assert_eq!((own[0].concurrency, own[0].retry.count), (Some(1), 0));
    let celos = defined(&format!(
        "celos.defineWorkflow({{id: 'w', schedule: celos.cronSchedule('0 0 0 * * ?'), trigger: celos.alwaysTrigger(), \
         schedulingStrategy: celos.serialSchedulingStrategy(), \
         externalService: celos.commandExternalService({{shell: 'true'}}), {common}}});"
    ));
    assert_eq!((celos[0].catch_up, celos[0].wait_from), (None, WaitStart::Time));
    assert_eq!(own[0].keys, celos[0].keys, "daily is a cron expression like any other");
    let timeless = defined("kelos.workflow('w', {schedule: 'daily', shell: 'true'});");
    assert_eq!(timeless[0].wait_from, WaitStart::Time, "without a timeout nothing is said of it");
}

#[test]
fn definitions_carry_the_version_of_their_project() {
    let own = defined("kelos.workflow('w', {schedule: 'daily', shell: 'true', version: '1.4'});");
    assert_eq!(own[0].version.as_ref().map(|version| version.as_str()), Some("1.4"));
    let refusals = [
        (
            refused("schedule: 'daily', shell: 'true', version: 1.4"),
            "version: expected a text such as \"1.4\", not 1.4",
        ),
        (refused("schedule: 'daily', shell: 'true', version: '#3'"), "version: a version can't begin with \"#\""),
    ];
    for (found, expected) in refusals {
        assert!(found.concat().contains(expected), "{found:?}");
    }
}

#[test]
fn mistakes_say_what_was_expected_where_the_call_begins() {
    let whole = |fields: &str| refused(&format!("schedule: 'hourly', shell: 'true', {fields}"));
    let cases = [
        (
            refused("shell: 'true'"),
            "schedule is missing: expected \"0 6 * * *\", \"minutely\", \"hourly\", \"daily\", or celos",
        ),
        (refused("schedule: 'hourley', shell: 'true'"), "not \"hourley\"; did you mean \"hourly\"?"),
        (refused("schedule: 'weekly', shell: 'true'"), "schedule: expected \"0 6 * * *\", \"minutely\""),
        (refused("schedule: '0 25 * * *', shell: 'true'"), "kelos.workflow \"w\": schedule: "),
        (
            refused("schedule: 7, shell: 'true'"),
            "schedule: expected \"0 6 * * *\", \"minutely\", \"hourly\", \"daily\", or celos.dependentSchedule(\"my-workflow\"), not 7",
        ),
        (
            refused("schedule: celos.alwaysTrigger(), shell: 'true'"),
            "schedule: expected a schedule such as celos.hourlySchedule(), not a trigger (celos.alwaysTrigger)",
        ),
        (refused("schedule: 'hourly'"), "neither command, shell nor job is given"),
        (
            refused("schedule: 'hourly', command: 'bin/load x'"),
            "command: expected an array such as [\"program\", \"argument\"], not \"bin/load x\"; for the text of a shell script use shell",
        ),
        (whole("command: ['x']"), "kelos.workflow \"w\": expected either command or shell, not both"),
        (
            whole("job: celos.commandExternalService({shell: 'x'})"),
            "both job and shell are given: expected shell in what makes the job",
        ),
        (refused("schedule: 'hourly', job: {shell: 'x'}"), "job: expected an external service such as"),
        (whole("after: ['a', '']"), "after[1]: expected a string such as \"my-workflow\", not \"\""),
        (whole("after: 'a/b'"), "after: workflow id can't contain slash"),
        (whole("after: null"), "after: expected a string such as \"my-workflow\", not null"),
        (
            whole("trigger: celos.alwaysTrigger"),
            "trigger: expected a trigger such as celos.alwaysTrigger(), not a function (is there a () missing after celos.alwaysTrigger?)",
        ),
        (whole("catchUp: 'none'"), "catchUp: expected \"all\" or \"latest\" or \"skip\", not \"none\""),
        (whole("catchUp: true"), "catchUp: expected \"all\" or \"latest\" or \"skip\", not true"),
        (whole("catchUp: ''"), "catchUp: expected \"all\""),
        (
            whole("waitTimeoutFrom: 'opening'"),
            "waitTimeoutFrom says from when waitTimeoutSeconds counts, which is missing",
        ),
        (whole("waitTimeoutSeconds: -1"), "waitTimeoutSeconds: expected a number >= 0, not -1"),
        (whole("waitTimeoutSeconds: 'soon'"), "waitTimeoutSeconds: expected a number >= 0, not \"soon\""),
        (whole("concurrency: 0"), "concurrency: expected a number >= 1, not 0"),
        (whole("timeZone: 'Berlin'"), "timeZone: "),
        (
            refused("schedule: celos.dependentSchedule('a'), shell: 'x', timeZone: 'Europe/Berlin'"),
            "timeZone and daylightSaving have no effect on a dependent schedule: set them on workflow \"a\"",
        ),
        (whole("cathUp: 'all'"), "unknown field 'cathUp'; did you mean 'catchUp'?"),
        (whole("externalService: 1"), "unknown field 'externalService'; it is called 'job' here"),
        (whole("cron: '0 6 * * *'"), "unknown field 'cron'; it is called 'schedule' here"),
        (whole("id: 'w'"), "unknown field 'id'; the name is the first argument"),
        (whole("retry: 3"), "retry: expected an object such as {count: 3, delaySeconds: 60}, not 3"),
        (whole("writes: '/out'"), "writes: expected an array such as"),
    ];
    for (n, (problems, expected)) in cases.iter().enumerate() {
        assert_eq!(problems.len(), 1, "{n}: {problems:?}");
        assert!(
            problems[0].starts_with("kelos.workflow \"w\": ") && problems[0].contains(expected),
            "{n}: {problems:?}"
        );
    }
    let all = whole("tagz: 1, maxRetryCount: 3, waitTimeoutSecond: 1");
    assert_eq!(all.len(), 3, "all unknown fields are told at once: {all:?}");
}

#[test]
fn mistakes_in_batches_are_told() {
    let whole = |batch: &str| refused(&format!("schedule: 'daily', shell: 'true', batch: {batch}"));
    let cases = [
        ("{size: 1}", "batch: size: expected a number >= 2 and <= 1000, not 1"),
        ("{delay: '10m'}", "batch: size is missing: expected a number such as 6"),
        ("{size: 6, delay: '-1m'}", "batch: delay: expected a length of time such as \"10m\", not \"-1m\""),
        ("6", "batch: expected an object such as {size: 6, delay: \"10m\"}, not 6"),
    ];
    for (batch, expected) in cases {
        let told = whole(batch);
        assert!(told.len() == 1 && told[0].contains(expected), "{batch}: {told:?}");
    }
}

#[test]
fn a_name_is_needed_and_the_object_knows_its_functions() {
    let cases = [
        (
            "kelos.workflow({schedule: 'hourly'});",
            "kelos.workflow: expected a name and an object, as in kelos.workflow(\"my-workflow\", {...}), not an object as the name",
        ),
        ("kelos.workflow('a/b', {});", "kelos.workflow: name: workflow id can't contain slash"),
        ("kelos.workflow('', {});", "kelos.workflow: name: "),
        ("kelos.workflow('w');", "kelos.workflow \"w\": expected an object such as {schedule: \"0 6 * * *\""),
        ("kelos.workflow('w', [1]);", "expected an object such as {schedule"),
        ("kelos.workfow('w', {});", "kelos has no function 'workfow'; did you mean 'workflow'?"),
        ("kelos.test('t', {});", "kelos has no function 'test'; tests are defined in files of the folder tests"),
        ("celos.workflow('w', {});", "celos has no function 'workflow'; use kelos.workflow"),
        ("kelo.workflow('w', {});", "did you mean kelos?"),
        (
            "kelos.workflow('w', {schedule: 'hourly', shell: 'x'}); kelos.workflow('w', {schedule: 'daily', shell: 'x'});",
            "Workflow with this ID already exists: w (defined in line 1 of this file)",
        ),
    ];
    for (text, expected) in cases {
        let folder = Folder::new();
        folder.write("a.js", text);
        let loaded = folder.load();
        assert_eq!(loaded.problems.len(), 1, "{text}: {:?}", loaded.problems);
        assert!(loaded.problems[0].to_string().contains(expected), "{text}: {}", loaded.problems[0]);
        assert_eq!(loaded.problems[0].line, 1, "{text}");
    }
    let own = defined("var kelos = 7; celos.databaseName('x' + kelos);");
    assert!(own.is_empty(), "a script may use the name for its own");
}

#[test]
fn workers_are_named_by_labels_and_their_loss_has_a_treatment() {
    let text = r#"
        kelos.workflow("a", { schedule: "daily", shell: "true", runsOn: ["gpu", "eu", "gpu"], onLost: "wait 30m" });
        celos.defineWorkflow({ id: "b", schedule: celos.cronSchedule("0 0 * * * ?"), schedulingStrategy: celos.serialSchedulingStrategy(),
            trigger: celos.alwaysTrigger(), externalService: celos.commandExternalService({command: ["true"]}), runsOn: "gpu", onLost: "end" });
        kelos.flow("f", { runsOn: ["eu"], onLost: "end", steps: {
            x: { shell: "true" }, y: { shell: "true", runsOn: "gpu", onLost: "retry" },
            z: { job: celos.httpExternalService({url: "http://x"}) } } });"#;
    let all = defined(text);
    let said = |job: &kelos_model::Job| {
        let labels: Vec<&str> = job.runs_on.iter().map(kelos_model::workers::Label::as_str).collect();
        format!("{} {:?}", labels.join(","), job.on_lost)
    };
    assert_eq!((said(&all[0].job), said(&all[1].job)), ("eu,gpu Wait(1800)".to_owned(), "gpu End".to_owned()));
    let steps = &all[2].flow.as_ref().expect("a flow").steps;
    assert_eq!(steps.iter().map(|step| said(&step.job)).collect::<Vec<_>>(), ["eu End", "gpu Retry", " Retry"]);
}

#[test]
fn commands_are_done_again_after_a_crash_and_nothing_else_is() {
    let text = r#"
        const web = celos.httpExternalService({url: "http://x"});
        const other = celos.externalService({executor: "outbox", settings: {}});
        const command = celos.commandExternalService({command: ["true"]});
        const common = {schedule: celos.cronSchedule("0 0 * * * ?"), schedulingStrategy: celos.serialSchedulingStrategy(), trigger: celos.alwaysTrigger()};
        kelos.workflow("a", { schedule: "daily", shell: "true" });
        kelos.workflow("b", { schedule: "daily", job: command, retry: {count: 2} });
        kelos.workflow("c", { schedule: "daily", job: web });
        kelos.workflow("d", { schedule: "daily", job: other, retry: {count: 2} });
        kelos.workflow("e", { schedule: "daily", shell: "true", onLost: "end" });
        kelos.workflow("f", { schedule: "daily", shell: "true", retry: {count: 2, onUnknown: "retry"} });
        celos.defineWorkflow({ ...common, id: "g", externalService: command });
        celos.defineWorkflow({ ...common, id: "h", externalService: command, retry: {count: 1, onUnknown: "again"} });
        kelos.flow("i", { onLost: "end", steps: {
            x: { shell: "true" }, y: { shell: "true", onLost: "retry" }, z: { job: web }, w: { signal: "go" } } });"#;
    let all = defined(text);
    let said: Vec<_> = all.iter().map(|one| one.retry.on_unknown).collect();
    let (again, retry, fail) = (OnUnknown::Again, OnUnknown::Retry, OnUnknown::Fail);
    assert_eq!(
        said,
        [again, again, retry, retry, fail, retry, retry, again, retry],
        "a flow has no attempts of its own"
    );
    let steps = &all[8].flow.as_ref().expect("a flow").steps;
    assert_eq!(steps.iter().map(|step| step.retry.on_unknown).collect::<Vec<_>>(), [fail, again, retry, retry]);
    let program = "celos.program('p', celos.commandExternalService({command: ['true']}));";
    assert_eq!(defined(program)[0].retry.on_unknown, retry, "as in CDAP");
}

#[test]
fn what_may_go_on_elsewhere_is_not_done_again_even_if_asked() {
    let told = refused(
        "schedule: 'daily', job: celos.httpExternalService({url: 'http://x'}), retry: {count: 0, onUnknown: 'again'}",
    );
    let expected = "retry.onUnknown: \"again\" is for commands, because what http has begun may go on: expected \"retry\" or \"fail\"";
    assert!(told[0].contains(expected), "{told:?}");
    let told = refused("schedule: 'daily', shell: 'true', retry: {count: 0, onUnknown: 'never'}");
    assert!(told[0].contains("retry.onUnknown: expected \"again\""), "{told:?}");
}

#[test]
fn mistakes_about_workers_are_told() {
    let whole = |more: &str| refused(&format!("schedule: 'daily', shell: 'true', {more}"));
    let such = "labels of workers such as [\"gpu\", \"eu\"]";
    let long = format!("runsOn: {:?}", ["x"; 33]);
    let cases = [
        ("runsOn: []", format!("runsOn: expected 1 to 32 {such}, not 0 of them")),
        ("runsOn: 7", format!("runsOn: expected 1 to 32 {such}, not 7")),
        (&long, format!("runsOn: expected 1 to 32 {such}, not 33 of them")),
        (
            "runsOn: ['gpu', 'a b']",
            format!("runsOn[1]: expected 1 to 63 letters, digits, _, ., -, / or =, as in {such}, not \"a b\""),
        ),
        (
            "onLost: 'wait'",
            "onLost: expected \"retry\", \"end\" or a wait such as \"wait 30m\", not \"wait\"".to_owned(),
        ),
        ("onLost: 30", "onLost: expected \"retry\", \"end\" or a wait such as \"wait 30m\", not 30".to_owned()),
    ];
    for (more, expected) in cases {
        let told = whole(more);
        assert!(told[0].contains(&expected), "{more}: {told:?}");
    }
    let told = refused("schedule: 'daily', job: celos.httpExternalService({url: 'http://x'}), runsOn: 'gpu'");
    assert!(told[0].contains("the job is http, which the server does itself"), "{told:?}");
}
