//! Apps of a `tasks.json` beside scripts: loaded together, watched live, checked as a whole.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use kelos_model::Workflow;
use kelos_model::jobs::{JobGraph, Relation, ValueFilter};
use kelos_model::probe::Verdict;
use kelos_model::workflow::Properties;
use kelos_sandbox::apps::AppsSource;
use kelos_sandbox::{Folders, Host, Limits, LoadResult, Scripts, check};
use tempfile::TempDir;

use crate::support::{ids, words, workflow};

struct House {
    folder: TempDir,
    scripts: Scripts,
}

impl House {
    fn new() -> House {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("workflows")).unwrap();
        let scripts = House::scripts(folder.path());
        House { folder, scripts }
    }

    fn scripts(folder: &Path) -> Scripts {
        let apps = AppsSource::of_file(&folder.join("tasks.json"), Some("{date}_{n}".to_owned()));
        let folders = Folders { workflows: folder.join("workflows"), defaults: folder.join("defaults") };
        Scripts::start(
            folders,
            Limits::default(),
            Host::dry().with_format(std::sync::Arc::new(kelos_door_stolos::TasksJson)).with_apps(Some(apps)),
        )
        .unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn tasks(&self, text: &str) -> LoadResult {
        self.write("tasks.json", text);
        self.scripts.load()
    }
}

const TWO: &str = r#"{"a": {"bash_cmd": "true"}, "b": {"bash_cmd": "true", "depends_on": {"app_name": ["a"]}}}"#;

#[test]
fn apps_and_scripts_make_one_set_of_workflows() {
    let house = House::new();
    assert_eq!(ids(&house.scripts.load()), [""; 0]);
    house.write("workflows/hourly.js", &workflow("hourly"));
    let loaded = house.tasks(TWO);
    assert_eq!(words(&loaded), [""; 0]);
    assert_eq!(ids(&loaded), ["a", "b", "hourly"]);
    assert_eq!(&*loaded.sources["tasks.json"], TWO);
    let again = house.scripts.load();
    assert!(loaded.workflows.iter().zip(&again.workflows).all(|(a, b)| Arc::ptr_eq(a, b)));
    assert_eq!((again.evaluated, again.unchanged), (0, 2));
    fs::remove_file(house.folder.path().join("tasks.json")).unwrap();
    assert_eq!(ids(&house.scripts.load()), ["hourly"]);
}

#[test]
fn a_broken_file_keeps_its_last_good_version() {
    let house = House::new();
    let good = house.tasks(TWO);
    let broken = house.tasks("{\"a\": {\"bash_cmd\": \"echo {x}\"},\n \"b\": 5}");
    assert_eq!(ids(&broken), ["a", "b"]);
    assert!(Arc::ptr_eq(&good.workflows[0], &broken.workflows[0]));
    let expected = [
        "tasks.json:1:20: bash_cmd of a has {x}, expected one of date, n, app_name, job_id: write {{ and }} for braces that are \
         meant as they are",
        "tasks.json:2:7: b is a number, expected an object",
    ];
    assert_eq!(words(&broken), expected);
    assert!(broken.problems.iter().all(|problem| problem.kept_last_good));
    assert_eq!(broken.problems[1].source_line.as_deref(), Some(" \"b\": 5}"));
    house.write("identifiers.json", "{\"date\": \"dat\"}");
    let worse = house.tasks(TWO);
    assert!(words(&worse)[0].starts_with("identifiers.json: failed to read the kinds of identifiers"));
    assert_eq!(ids(&worse), ["a", "b"]);
    house.write("identifiers.json", "{\"date\": \"date\"}");
    assert_eq!(words(&house.scripts.load()), [""; 0]);
}

#[test]
fn what_does_not_fit_together_leaves_what_did_in_force() {
    let house = House::new();
    let good = house.tasks(TWO);
    let odd = house.tasks(
        r#"{"a": {"bash_cmd": "false"}, "b": {"bash_cmd": "true", "depends_on": {"app_name": ["nobody"]}}, "c": {"bash_cmd": "true"}}"#,
    );
    let why = "tasks.json:1:70: b, group default, member 1: no workflow is named \"nobody\"";
    assert_eq!((words(&odd), ids(&odd)), (vec![why.to_owned()], vec!["a", "b", "c"]));
    assert!(odd.problems[0].kept_last_good && Arc::ptr_eq(&odd.workflows[1], &good.workflows[1]));
    assert_eq!(odd.workflows[0].job.settings["shell"], "false", "what fits is as it is written now");
    let fresh = House::scripts(house.folder.path()).load();
    assert_eq!((ids(&fresh), dormant(&fresh)), (vec!["a", "b", "c"], vec!["b".to_owned()]));
    assert!(!fresh.problems[0].kept_last_good);
    let remembered = House::scripts(house.folder.path());
    remembered.remember("tasks.json", good.workflows.clone());
    let remembered = remembered.load();
    assert_eq!((ids(&remembered), dormant(&remembered)), (vec!["a", "b", "c"], Vec::<String>::new()));
    // Its dependencies were removed, too: no earlier version of it fits.
    let without =
        house.tasks(r#"{"b": {"bash_cmd": "true", "depends_on": {"app_name": ["a"]}}, "c": {"bash_cmd": "true"}}"#);
    assert_eq!(words(&without), ["tasks.json:1:42: b, group default, member 1: no workflow is named \"a\""]);
    assert_eq!((ids(&without), dormant(&without)), (vec!["b", "c"], vec!["b".to_owned()]));
    let mended = house.tasks(TWO);
    assert_eq!((ids(&mended), dormant(&mended)), (vec!["a", "b"], Vec::<String>::new()));
}

/// The dormant apps.
fn dormant(loaded: &LoadResult) -> Vec<String> {
    let keyed = loaded.workflows.iter().filter_map(|one| Some((&one.id, one.keys.jobs()?)));
    JobGraph::sound(keyed).1.into_keys().map(|id| id.to_string()).collect()
}

#[test]
fn one_broken_app_and_what_depends_on_it_lie_dormant_and_the_others_work() {
    let house = House::new();
    let text = r#"{"a": {"bash_cmd": "true"},
"b": {"bash_cmd": "true", "valid_if_or": {"_func": "my.module.f"}},
"c": {"bash_cmd": "true", "depends_on": {"app_name": ["b"]}},
"d": {"bash_cmd": "true", "depends_on": {"app_name": ["c"]}},
"e": {"bash_cmd": "true", "depends_on": {"app_name": ["a"]}},
"f": {"job_id": "{date}{n}"},
"g": {"bash_cmd": "true", "depends_on": {"app_name": ["f"]}},
"h": 5}"#;
    let loaded = house.tasks(text);
    assert_eq!(ids(&loaded), ["a", "b", "c", "d", "e", "f", "g", "h"]);
    assert_eq!(dormant(&loaded), ["b", "c", "d", "f", "g", "h"]);
    let func =
        "valid_if_or calls a function of Python, which can't be done: list the values, or define the app in a script";
    let template = "\"{date}{n}\" is no template of job ids: nothing tells where date ends and n begins";
    let expected = [
        format!("tasks.json:2:43: {func}"),
        format!("tasks.json:6:17: {template}"),
        "tasks.json:8:6: h is a number, expected an object".to_owned(),
        format!("tasks.json:3:1: c: it depends on b, which lies dormant: {func}"),
        format!("tasks.json:4:1: d: it depends on b, which lies dormant: {func}"),
        format!("tasks.json:7:1: g: it depends on f, which lies dormant: {template}"),
    ];
    let told: Vec<String> = loaded.problems.iter().filter(|one| one.is_error()).map(ToString::to_string).collect();
    assert_eq!(told, expected);
    let about: Vec<&str> = loaded.problems.iter().filter_map(|one| Some(one.workflow.as_ref()?.as_str())).collect();
    assert_eq!(about, ["b", "f", "h", "c", "d", "g"]);
    assert!(loaded.has_errors() && !loaded.problems.iter().any(|one| one.kept_last_good));
    // One that is mended works with what waited for it.
    let mended = house.tasks(&text.replace(r#""_func": "my.module.f""#, r#""n": [1]"#));
    assert_eq!(dormant(&mended), ["f", "g", "h"]);
    // One that breaks stays as it was.
    let broken = house.tasks(&text.replace("{\"bash_cmd\": \"true\"},", "{\"bash_cmd\": \"echo {x}\"},"));
    assert!(Arc::ptr_eq(&broken.workflows[0], &mended.workflows[0]) && broken.problems[0].kept_last_good);
}

/// Stolos's own example has a function of Python in one app.
#[test]
fn a_file_like_the_example_of_stolos_loads_and_works_but_for_one_app_and_its_child() {
    let house = House::new();
    let example =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stolos/example/tasks.json"));
    let apps = AppsSource::of_file(
        &house.folder.path().join("tasks.json"),
        Some("{date}_{client_id}_{collection_name}".to_owned()),
    );
    let folders =
        Folders { workflows: house.folder.path().join("workflows"), defaults: house.folder.path().to_owned() };
    let scripts = Scripts::start(
        folders,
        Limits::default(),
        Host::dry().with_format(std::sync::Arc::new(kelos_door_stolos::TasksJson)).with_apps(Some(apps)),
    )
    .unwrap();
    house.write("tasks.json", &example.unwrap());
    let loaded = scripts.load();
    assert_eq!((loaded.workflows.len(), dormant(&loaded)), (26, vec!["app3".to_owned(), "app4".to_owned()]));
}

#[test]
fn a_warning_is_about_the_app_that_it_stands_in() {
    let house = House::new();
    let loaded =
        house.tasks("{\"a\": {\"bash_cmd\": \"true\"},\n \"b\": {},\n \"c\": {\"bash_cmd\": \"true\", \"x\": 1}}");
    let about: Vec<&str> = loaded.problems.iter().filter_map(|one| Some(one.workflow.as_ref()?.as_str())).collect();
    assert_eq!(about, ["b", "c"]);
    let many: Vec<String> = (0..150).map(|n| format!("\"app{n}\": {{}}")).collect();
    let loaded = house.tasks(&format!("{{{}}}", many.join(",\n")));
    assert_eq!((loaded.workflows.len(), loaded.problems.len()), (150, 101));
    assert_eq!(words(&loaded)[100], "tasks.json: warning: and 50 more warnings");
}

#[test]
fn a_name_that_is_there_twice_is_told_with_both_places() {
    let house = House::new();
    house.write("workflows/one.js", &workflow("c"));
    let loaded = house.tasks("{\n \"c\": {\"bash_cmd\": \"true\"}}");
    let expected = "tasks.json:2:1: Workflow with this ID already exists: c is defined in one.js:1 and in tasks.json:2; the first \
                    one is used";
    assert_eq!(words(&loaded), [expected]);
    assert!(loaded.workflows[0].keys.schedule().is_some());
}

#[test]
fn ten_thousand_apps_are_read() {
    let mut text = "{\"app0\": {\"bash_cmd\": \"true\"}".to_owned();
    for n in 1..10_000 {
        let before = n - 1;
        text += &format!(
            ",\n\"app{n}\": {{\"bash_cmd\": \"echo {{n}}\", \"depends_on\": {{\"app_name\": [\"app{before}\"]}}}}"
        );
    }
    let house = House::new();
    let began = std::time::Instant::now();
    let loaded = house.tasks(&(text + "}"));
    eprintln!("10,000 apps: {:?}", began.elapsed());
    assert_eq!(words(&loaded), [""; 0]);
    let lines = |workflow: &Arc<Workflow>| (workflow.id.as_str() == "app77").then_some(workflow.source.line);
    assert_eq!(loaded.workflows.iter().find_map(lines), Some(78));
}

const MONTHS: &str = r#"celos.defineJobGraph({
    day: {job_id: "{date}_{n}", bash_cmd: "true", autofill_values: {n: [1, 2]}, valid: (ids) => ids.n === "1",
          externalService: undefined},
    month: {
        job_id: "{month}_{n}", externalService: celos.commandExternalService((ids) => ({command: ["sum", ids.month, ids.n]})),
        depends_on: {days: {
            app_name: ["day"],
            parentsOf: (ids) => [["day", {date: ids.month + "01", n: ids.n}], ["day", {date: ids.month + "15", n: ids.n}]],
            childrenOf: (app, ids) => CHILDREN,
        }},
    },
}, {identifiers: {date: "date", n: "integer", month: /^(2014(06|07|12)|2015(01|02))$/}});
"#;

const RIGHT: &str = "/(01|15)$/.test(ids.date) ? [{month: ids.date.slice(0, 6), n: ids.n}] : []";

fn months(children: &str) -> House {
    let house = House::new();
    house.write("workflows/months.js", &MONTHS.replace("CHILDREN", children));
    house
}

#[test]
fn functions_of_apps_are_given_the_identifiers_of_a_job() {
    let house = months(RIGHT);
    let loaded = house.scripts.load();
    assert_eq!(words(&loaded), [""; 0]);
    let named = |name: &str| loaded.workflows.iter().find(|one| one.id.as_str() == name).unwrap();
    let (day, month) = (named("day"), named("month"));
    assert_eq!((day.project.as_str(), day.source.line), ("months", 1));
    let key = |workflow: &Workflow, id: &str| workflow.keys.read(id).unwrap();
    let valid = day.keys.jobs().unwrap().valid.as_ref().unwrap().function.as_ref().unwrap();
    let ask = |id: &str| house.scripts.ask(valid, &day.id, &key(day, id)).unwrap();
    assert_eq!((ask("20140601_1"), ask("20140601_2")), (Verdict::Yes, Verdict::No));
    let Properties::Function(function) = &month.job.properties else { panic!("a function") };
    let properties = house.scripts.properties(function, &month.id, &key(month, "201406_01")).unwrap();
    assert_eq!(properties["command"], serde_json::json!(["sum", "201406", "1"]));
    let keyed = loaded.workflows.iter().map(|one| (one.id.clone(), one.keys.jobs().unwrap().clone()));
    let graph = JobGraph::new(keyed.collect()).unwrap();
    let jobs = |relation: &Relation| {
        let named = house.scripts.related(relation).unwrap();
        let jobs = graph.answered(relation, &named).unwrap();
        jobs.iter().map(|job| format!("{} {}", job.workflow, job.id)).collect::<Vec<_>>()
    };
    assert_eq!(jobs(&graph.asks_parents(&month.id, "201406_1")[0]), ["day 20140601_1", "day 20140615_1"]);
    assert_eq!(jobs(&graph.asks_children(&day.id, "20140615_2")[0]), ["month 201406_2"]);
    assert_eq!(jobs(&graph.asks_children(&day.id, "20140616_2")[0]), [""; 0]);
}

#[test]
fn pairs_of_functions_are_held_against_each_other() {
    let told = |children: &str| {
        let house = months(children);
        let folder = house.folder.path();
        let folders = Folders { workflows: folder.join("workflows"), defaults: folder.join("defaults") };
        words(&check(folders, Limits::default(), std::sync::Arc::new(kelos_door_stolos::TasksJson), None).unwrap())
    };
    assert_eq!(told(RIGHT), [""; 0]);
    let hint = " (each function has to be the other one read backwards)";
    let too_many = "months.js:1:1: month, group days: childrenOf says that day 20140630_1 has month 201406_1, but parentsOf of month \
                    201406_1 does not name day 20140630_1";
    assert_eq!(told("[{month: ids.date.slice(0, 6), n: ids.n}]"), [format!("{too_many}{hint}")]);
    let fails = &told("ids.nothing.at.all")[0];
    assert!(fails.contains("month, group days: childrenOf fails for day 20140601_1: "), "{fails}");
    let wrong = &told("[7]")[0];
    assert!(wrong.contains("what childrenOf returned [0]: expected an object of identifiers"), "{wrong}");
}

#[test]
fn functions_know_identifiers() {
    let house = House::new();
    let text = r#"var client = function (text) {
    if (!/^\d+$/.test(text)) throw new Error("a client is a number");
    return Number(text) > 0 && Number(text);
};
celos.defineJobGraph({
    a: {job_id: "{client}", bash_cmd: "true", autofill_values: {client: ["01", 2]}, valid_if_or: {client: ["002"]}},
    b: {job_id: "{client}_{x}", bash_cmd: "true", depends_on: {g: [{app_name: ["a"], client: ["0002"], x: [1]}]}},
}, {identifiers: {client: client}});"#;
    house.write("workflows/a.js", text);
    let loaded = house.scripts.load();
    assert_eq!(words(&loaded), [""; 0]);
    let [a, b] = [0, 1].map(|at| loaded.workflows[at].keys.jobs().unwrap());
    let texts = |values: &[Arc<str>]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(&a.domains["client"]), ["1", "2"]);
    assert_eq!(texts(&a.valid.as_ref().unwrap().values["client"]), ["2"]);
    let ValueFilter::Of(wanted) = &b.depends_on[0].members[0].values["client"] else { panic!("a list") };
    assert_eq!(texts(wanted), ["2"]);
    let normal = |text: &str| house.scripts.normal(&b.checks["client"], text).map_err(|error| error.to_string());
    assert_eq!(normal("007").as_deref(), Ok("7"));
    assert!(normal("x").unwrap_err().contains("a client is a number"));
    assert!(normal("0").unwrap_err().contains("the function of the identifier refuses \"0\""));
}
