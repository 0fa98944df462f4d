//! Texts that scripts written for Celos print and catch, compared with those of Celos.

use kelos_sandbox::Limits;

use crate::support::{Folder, ids, workflow};

/// The problems of a file, in words.
fn problems(text: &str) -> Vec<String> {
    let folder = Folder::with(Limits::default());
    folder.write("a.js", text);
    folder.load().problems.iter().map(ToString::to_string).collect()
}

/// A file that defines a workflow whose id tells whether `condition` held.
fn holds(before: &str, condition: &str) {
    let folder = Folder::with(Limits::default());
    let define = workflow("ID").replace("\"ID\"", &format!("{condition} ? 'yes' : 'no'"));
    assert!(define.contains("'yes'"), "{define}");
    folder.write("a.js", &format!("{before}\n{define}"));
    let loaded = folder.load();
    assert_eq!(loaded.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0], "{before}");
    assert_eq!(ids(&loaded), ["yes"], "{before} {condition}");
}

/// Calls, and the text that Celos throws for each.
const THROWN: [(&str, &str); 17] = [
    ("celos.cronSchedule()", "Undefined cron expression"),
    ("celos.cronSchedule('')", "Undefined cron expression"),
    ("celos.hdfsCheckTrigger()", "Undefined path in hdfsCheckTrigger"),
    ("celos.hdfsCheckTrigger('/a')", "Undefined fs in hdfsCheckTrigger and CELOS_DEFAULT_HDFS not set"),
    ("celos.hdfsCheck('')", "Undefined path in hdfsCheckTrigger"),
    ("celos.hdfsCheck('/a')", "Undefined fs in hdfsCheckTrigger and CELOS_DEFAULT_HDFS not set"),
    ("celos.hdfsCheck('/a', 'x', 'hdfs://nn')", "slotID should be instance of com.collective.celos.SlotID"),
    ("celos.hdfsPath()", "Undefined path in hdfsPath"),
    ("celos.notTrigger()", "Undefined sub trigger"),
    ("celos.delayTrigger()", "Undefined seconds"),
    ("celos.offsetTrigger('1', celos.alwaysTrigger())", "Undefined seconds"),
    ("celos.offsetTrigger(0)", "Undefined trigger"),
    ("celos.successTrigger()", "Undefined workflow name in success trigger"),
    ("celos.oozieExternalService({})", "Undefined Oozie URL"),
    ("celos.defineWorkflow({})", "Workflow ID must be a string: undefined"),
    ("celos.defineWorkflow({id: 7})", "Workflow ID must be a string: 7"),
    ("celos.defineWorkflow({id: null})", "Workflow ID must be a string: null"),
];

#[test]
fn scripts_can_compare_what_is_thrown() {
    for (call, text) in THROWN {
        holds(&format!("var e; try {{ {call}; }} catch (caught) {{ e = caught; }}"), &format!("e === \"{text}\""));
    }
    let timeout = "Object.assign({schedule: celos.hourlySchedule(), schedulingStrategy: celos.serialSchedulingStrategy(), \
                   trigger: celos.alwaysTrigger(), externalService: celos.oozieExternalService({}, 'http://o')}, \
                   {id: 'x', waitTimeoutSeconds: 'soon'})";
    holds(
        &format!("var e; try {{ celos.defineWorkflow({timeout}); }} catch (caught) {{ e = caught; }}"),
        "e === 'waitTimeoutSeconds must be a number: soon'",
    );
}

#[test]
fn what_nobody_catches_has_its_place() {
    for (call, text) in THROWN {
        let found = problems(&format!("var a = 1;\n\n    {call};\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a.js:3:") && found[0].contains(text), "{found:?}");
        let again = problems(&format!("try {{\n{call};\n}} catch (e) {{\n    throw e;\n}}\n"));
        assert!(again[0].starts_with("a.js:2:"), "{again:?}");
    }
}

#[test]
fn a_text_of_the_script_itself_is_no_text_of_celos() {
    let found = problems("try { celos.cronSchedule(); } catch (e) {}\nthrow 'mine';\n");
    assert!(found[0].contains("thrown text: mine"), "{found:?}");
}

#[test]
fn ids_and_times_are_made_as_in_celos() {
    let time = "var t = new ScheduledTime('2016-02-07T04:05:06.789Z'), d = t.getDateTime();\
                var s = new SlotID(new WorkflowID('x'), t);";
    for condition in [
        "String(s) === 'x@2016-02-07T04:05:06.789Z'",
        "s.getWorkflowID() == 'x' && s.getWorkflowID().toString() === 'x'",
        "new WorkflowID('x').equals(new WorkflowID('x'))",
        "String(d) === '2016-02-07T04:05:06.789Z'",
        "d.getDayOfWeek() === 7 && d.getDayOfYear() === 38 && d.getMonthOfYear() === 2 && d.getHourOfDay() === 4",
        "d.toString('yyyy-MM-dd HH:mm:ss.SSS') === '2016-02-07 04:05:06.789'",
        "d.toString(\"yy MMM MMMM d EEE EEEE D e 'of ''x'\") === \"16 Feb February 7 Sun Sunday 38 7 of 'x\"",
        "String(d.plusWeeks(1).minusMonths(1)) === '2016-01-14T04:05:06.789Z'",
        "new ScheduledTime(d.plusDays(1)).day() === '08'",
        "d.isBefore(d.plusSeconds(1)) && d.plusYears(1).isAfter(t) && d.isEqual(t) && d.equals(t.getDateTime())",
    ] {
        holds(time, condition);
    }
    for (wrong, text) in [
        ("new WorkflowID('')", "new WorkflowID: expected a string"),
        ("new WorkflowID('a/b')", "new WorkflowID"),
        ("new SlotID(7, ScheduledTime.now())", "expected a string or a WorkflowID, not 7"),
        ("ScheduledTime.now().getDateTime().toString('xx')", "the letter 'x' of a pattern is not known"),
    ] {
        let found = problems(wrong);
        assert!(found[0].starts_with("a.js:1:") && found[0].contains(text), "{found:?}");
    }
}

#[test]
fn a_function_statement_without_a_name_is_taken() {
    let folder = Folder::with(Limits::default());
    folder.write("defaults/d.js", "function () { return 1; };\nvar FROM_DEFAULTS = 'b';\n");
    let text = "function (x) { return x; };\nimportDefaults('d');\nif (true) { function () {} }\n";
    folder.write("a.js", &(text.to_owned() + &workflow("a") + &workflow("b").replace("\"b\"", "FROM_DEFAULTS")));
    let loaded = folder.load();
    assert_eq!(loaded.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(ids(&loaded), ["a", "b"]);
    let found = problems("function () {};\n\nvar x = ;\n");
    assert!(found[0].starts_with("a.js:3:"), "the mistake is named, not the statement: {found:?}");
}

#[test]
fn what_celos_takes_for_nothing_is_taken_with_a_word() {
    let whole = |field: &str| {
        workflow("w").replace("id:", &format!("{field}, id:")).replace("\"id\":", &format!("{field}, \"id\":"))
    };
    for (field, retries, said) in [
        ("maxRetryCount: -1", 0, "maxRetryCount is -1, and is taken for 0"),
        ("maxRetryCount: '-2'", 0, "maxRetryCount is \"-2\", and is taken for 0"),
        ("maxRetryCount: NaN", 0, "maxRetryCount is NaN, and is taken for 0"),
        ("maxRetryCount: '3'", 3, ""),
        ("maxRetryCount: 2.9", 2, ""),
        ("maxRetryCount: null", 0, ""),
    ] {
        let folder = Folder::with(Limits::default());
        folder.write("w.js", &whole(field));
        let loaded = folder.load();
        assert_eq!(ids(&loaded), ["w"], "{field}: {:?}", loaded.problems);
        assert_eq!(loaded.workflows[0].retry.count, retries, "{field}");
        let words: Vec<&str> = loaded.problems.iter().map(|one| one.message.as_str()).collect();
        assert_eq!(words.is_empty(), said.is_empty(), "{field}: {words:?}");
        assert!(words.iter().all(|one| one.contains(said)), "{field}: {words:?}");
    }
    for (slots, concurrency) in [("0", 0), ("-3", 0), ("0.5", 0), ("'2'", 2)] {
        let found = problems(&format!("celos.serialSchedulingStrategy({slots});"));
        assert_eq!(found.len(), usize::from(concurrency == 0), "{slots}: {found:?}");
        assert!(found.iter().all(|one| one.contains("no slot will ever run")), "{found:?}");
    }
    assert!(problems("celos.serialSchedulingStrategy(NaN);")[0].contains("expected a number >= 0, not NaN"));
}
