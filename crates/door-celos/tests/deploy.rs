//! Deploying to folders of this machine, which stand for HDFS too; and what a failure at any moment leaves behind.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use kelos_door_celos::deploy::{
    Bundle, DeployError, DeploymentPlan, Difference, HdfsRoot, Plan, ProjectName, Site, prepare,
};
use kelos_storage::{Entry, FileSystem, LocalFiles, Place, Storage, StorageConfig, StorageError};
use tempfile::TempDir;
use tokio::io::AsyncRead;

const NOW: &str = "2026-11-21T12:00:00Z";

/// Files of this machine that fail at one call, and at all after it.
struct Faulty {
    left: AtomicUsize,
    cause: StorageError,
}

impl Faulty {
    fn call(&self) -> Result<(), StorageError> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| self.cause.clone())
    }
}

#[async_trait]
impl FileSystem for Faulty {
    async fn stat(&self, path: &str) -> Result<Option<Entry>, StorageError> {
        self.call()?;
        LocalFiles.stat(path).await
    }
    async fn list(&self, folder: &str) -> Result<Option<Vec<Entry>>, StorageError> {
        self.call()?;
        LocalFiles.list(folder).await
    }
    async fn read(&self, path: &str, limit: u64) -> Result<Bytes, StorageError> {
        self.call()?;
        LocalFiles.read(path, limit).await
    }
    async fn put(&self, path: &str, content: &mut (dyn AsyncRead + Send + Unpin)) -> Result<(), StorageError> {
        self.call()?;
        LocalFiles.put(path, content).await
    }
    async fn make_folder(&self, path: &str) -> Result<(), StorageError> {
        self.call()?;
        LocalFiles.make_folder(path).await
    }
    async fn rename(&self, from: &str, to: &str) -> Result<(), StorageError> {
        self.call()?;
        LocalFiles.rename(from, to).await
    }
    async fn remove(&self, path: &str) -> Result<(), StorageError> {
        self.call()?;
        LocalFiles.remove(path).await
    }
}

/// A target, and a deployment directory beside it.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> World {
        let world = World { folder: tempfile::tempdir().unwrap() };
        for name in ["workflows", "defaults", "hdfs-root", "project"] {
            std::fs::create_dir(world.path(name)).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    /// A whole project of one workflow.
    fn write_project(&self, version: &str) {
        self.write("project/workflow.js", &workflow("w", "importDefaults('p');", "version: VERSION"));
        self.write("project/defaults.js", &format!("var VERSION = '{version}';"));
        self.write("project/hdfs/workflow.xml", &format!("<workflow-app name='{version}'/>"));
        self.write("project/hdfs/lib/code.jar", version);
    }

    fn bundle(&self) -> Result<Bundle, DeployError> {
        Bundle::read(&self.path("project"))
    }

    fn site(&self, files: Arc<dyn FileSystem>) -> Site {
        let place = |name: &str| Place {
            files: files.clone(),
            path: self.path(name).to_str().unwrap().to_owned(),
            endpoint: "file:".to_owned(),
        };
        let hdfs = HdfsRoot::opened(place("hdfs-root"));
        Site {
            workflows: place("workflows"),
            defaults: place("defaults"),
            hdfs,
            format: std::sync::Arc::new(kelos_door_stolos::TasksJson),
            notes: Vec::new(),
        }
    }

    fn failing_after(&self, calls: usize, cause: StorageError) -> Site {
        self.site(Arc::new(Faulty { left: AtomicUsize::new(calls), cause }))
    }

    async fn prepare(&self, bundle: Option<Bundle>) -> Result<DeploymentPlan, DeployError> {
        prepare(project(), bundle, self.site(Arc::new(LocalFiles)), NOW.parse().unwrap()).await
    }

    async fn deploy(&self) -> Result<Plan, DeployError> {
        let prepared = self.prepare(Some(self.bundle()?)).await?;
        prepared.carry_out(|_| ()).await?;
        Ok(prepared.plan().clone())
    }

    async fn refusal(&self) -> String {
        let before = self.everything();
        let error = self.deploy().await.unwrap_err();
        assert_eq!(self.everything(), before, "nothing is touched");
        let shown = error.to_string().replace(self.folder.path().to_str().unwrap(), "DIR");
        match error {
            DeployError::Scripts { problems, .. } => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                format!("{shown}: {}", problems.join("; "))
            }
            _ => shown,
        }
    }

    /// All files of the target, and what is in them.
    fn everything(&self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for name in ["workflows", "defaults", "hdfs-root"] {
            collect(&self.path(name), name, &mut found);
        }
        found.sort();
        found
    }
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = format!("{prefix}/{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => collect(&entry.path(), &name, found),
            false => found.push((name, std::fs::read_to_string(entry.path()).unwrap())),
        }
    }
}

fn project() -> ProjectName {
    ProjectName::new("p").unwrap()
}

fn workflow(id: &str, before: &str, properties: &str) -> String {
    format!(
        "{before}\ndefine({id:?}, {{{properties}}});\n\
         function define(id, properties) {{ celos.defineWorkflow({{ id: id, \
         schedule: celos.hourlySchedule(), schedulingStrategy: celos.serialSchedulingStrategy(), \
         trigger: celos.alwaysTrigger(), externalService: celos.oozieExternalService(properties, 'http://oozie') }}); }}\n"
    )
}

fn changes(plan: &Plan) -> Vec<(String, Difference)> {
    let name = |place: &str| place.rsplit('/').next().unwrap().to_owned();
    plan.files.iter().map(|file| (name(&file.place), file.difference)).collect()
}

#[tokio::test]
async fn a_project_is_deployed_changed_and_taken_away() {
    let world = World::new();
    world.write_project("1");
    std::fs::remove_dir(world.path("hdfs-root")).unwrap();
    let plan = world.deploy().await.unwrap();
    let made = format!("the root file:{}/hdfs-root is not there yet: it is made", world.folder.path().display());
    assert_eq!(plan.notes, [made]);
    assert!(plan.files.iter().all(|file| file.difference == Difference::New), "{plan:?}");
    assert_eq!(plan.slots.created.values().map(|times| times.len()).sum::<usize>(), 7 * 24);
    let names = |world: &World| world.everything().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let all = ["defaults/p.js", "hdfs-root/p/lib/code.jar", "hdfs-root/p/workflow.xml", "workflows/p.js"];
    assert_eq!(names(&world), all);
    assert_eq!(changes(&world.deploy().await.unwrap()).iter().filter(|(_, one)| *one != Difference::Same).count(), 0);

    world.write_project("2");
    std::fs::remove_file(world.path("project/hdfs/lib/code.jar")).unwrap();
    let plan = world.deploy().await.unwrap();
    let expected = [
        ("workflow.xml", Difference::Changed),
        ("code.jar", Difference::Removed),
        ("p.js", Difference::Changed),
        ("p.js", Difference::Same),
    ];
    assert_eq!(changes(&plan), expected.map(|(name, what)| (name.to_owned(), what)));
    assert_eq!(plan.workflows[0].parts.iter().map(|part| part.as_str()).collect::<Vec<_>>(), ["job"]);
    assert_eq!(names(&world), ["defaults/p.js", "hdfs-root/p/workflow.xml", "workflows/p.js"]);

    let prepared = world.prepare(None).await.unwrap();
    assert_eq!(prepared.plan().slots.dropped.values().map(|times| times.len()).sum::<usize>(), 7 * 24);
    let mut steps = Vec::new();
    prepared.carry_out(|step| steps.push(step.to_string())).await.unwrap();
    assert_eq!(world.everything(), []);
    let order: Vec<&str> = steps.iter().map(|step| step.rsplit('/').nth(1).unwrap()).collect();
    assert_eq!(order, ["workflows", "defaults", "hdfs-root"]);
    world.prepare(None).await.unwrap().carry_out(|_| ()).await.unwrap();
}

#[tokio::test]
async fn a_project_of_several_files_is_deployed_changed_and_taken_away() {
    let world = World::new();
    let daily = |id: &str, holidays: &str| {
        format!(
            "kelos.workflow('{id}', {{command: [NAME], startTime: '2026-01-01T00:00Z', catchUp: 'all', \
             schedule: celos.calendar('business', {{holidays: '{holidays}'}})}});\n"
        )
    };
    world.write("workflows/p.js", &workflow("old", "", ""));
    world.write("workflows/p.x.js", &workflow("x", "importDefaults('names');", "x: NAME"));
    world.write("defaults/names.js", "var NAME = 'all';");
    world.write("project/workflows/a.js", &format!("importDefaults('names');\n{}", daily("a", "holidays.txt")));
    world.write("project/workflows/b.js", &workflow("b", "", ""));
    world.write("project/workflows/b.test.js", "kelos.nonsense(");
    world.write("project/defaults/names.js", "var NAME = 'own';");
    world.write("project/defaults/holidays.txt", "2026-11-18\n");
    world.write("project/defaults/README.md", "");
    let plan = world.deploy().await.unwrap();
    let names = |world: &World| world.everything().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let all = [
        "defaults/names.js",
        "defaults/p+holidays.txt",
        "defaults/p+names.js",
        "workflows/p+a.js",
        "workflows/p+b.js",
        "workflows/p.x.js",
    ];
    assert_eq!(names(&world), all, "what it had before is gone, and that of others is there");
    let files: Vec<String> = changes(&plan).into_iter().map(|(name, _)| name).collect();
    assert_eq!(files, ["p+holidays.txt", "p+names.js", "p+a.js", "p+b.js", "p.js"]);
    let of = |plan: &Plan, id: &str| plan.workflows.iter().find(|one| one.id.as_str() == id).unwrap().project.clone();
    assert_eq!((of(&plan, "a"), of(&plan, "b"), of(&plan, "old")), ("p".to_owned(), "p".to_owned(), "p".to_owned()));
    let days: Vec<String> = plan.slots.created.iter().next().unwrap().1.iter().map(ToString::to_string).collect();
    let expected = ["13", "16", "17", "19"].map(|day| format!("2026-11-{day}T00:00:00Z"));
    assert_eq!(days, expected, "neither a holiday, nor what has not ended");

    assert!(world.deploy().await.unwrap().files.iter().all(|file| file.difference == Difference::Same));
    std::fs::remove_file(world.path("project/workflows/b.js")).unwrap();
    world.write("project/defaults/names.js", "var NAME = ;");
    let told = world.refusal().await;
    assert!(told.starts_with("deploy p: ") && told.contains("p+"), "{told}");
    world.write("project/defaults/names.js", "var NAME = 'new';");
    let plan = world.deploy().await.unwrap();
    let changed = plan.files.iter().find(|file| file.place.ends_with("p+names.js")).unwrap();
    assert_eq!(changed.diff, ["- var NAME = 'own';", "+ var NAME = 'new';"]);
    assert!(!names(&world).contains(&"workflows/p+b.js".to_owned()));

    world.prepare(None).await.unwrap().carry_out(|_| ()).await.unwrap();
    assert_eq!(names(&world), ["defaults/names.js", "workflows/p.x.js"]);
}

#[tokio::test]
async fn texts_of_the_target_are_read_and_periods_have_to_end() {
    let world = World::new();
    world.write("defaults/holidays.txt", "2026-12-25\n");
    let text =
        "kelos.workflow('w', {command: ['true'], startTime: '2026-01-01T00:00Z', catchUp: 'all', schedule: UNIT});";
    world.write("project/workflow.js", &text.replace("UNIT", "celos.calendar('business', {holidays: 'holidays.txt'})"));
    world.deploy().await.unwrap();
    world.write("project/workflow.js", &text.replace("UNIT", "celos.calendar('hourly')"));
    let created = world.deploy().await.unwrap().slots.created;
    let times = created.values().next().unwrap();
    // Hours are about periods: that which begins at noon has not ended at noon.
    assert_eq!(times.last().unwrap().to_string(), "2026-11-21T10:00:00Z");
    assert_eq!(times.first().unwrap().to_string(), "2026-11-14T11:00:00Z");
}

/// The n-th call fails, and all after it, for every n.
#[tokio::test]
async fn whatever_breaks_off_leaves_whole_files_and_is_completed_by_the_next_try() {
    let cause = StorageError::Unreachable { endpoint: "file:".to_owned(), detail: "the cable".to_owned() };
    let mut broken = 0;
    for calls in 0.. {
        let world = World::new();
        world.write_project("1");
        world.deploy().await.unwrap();
        world.write_project("2");
        world.write("project/workflow.js", &workflow("w2", "importDefaults('p');", "version: VERSION"));
        let site = world.failing_after(calls, cause.clone());
        let prepared = match prepare(project(), Some(world.bundle().unwrap()), site, NOW.parse().unwrap()).await {
            Ok(prepared) => prepared,
            Err(_) => continue,
        };
        let ended = prepared.carry_out(|_| ()).await;
        let whole = |name: &str, new: &str| {
            let old = world.read(name);
            let text = old.as_deref().unwrap_or_default();
            assert!(text.contains(new) || text.contains('1') || text.contains("\"w\""), "{calls}: {name}: {old:?}");
        };
        whole("workflows/p.js", "\"w2\"");
        whole("defaults/p.js", "'2'");
        if let Err(DeployError::Incomplete { done, left, .. }) = &ended {
            broken += 1;
            assert_eq!(done.len() + left.len(), 3, "{calls}");
            let scripts_are_new = world.read("workflows/p.js").unwrap().contains("w2");
            let folder = world.read("hdfs-root/p/workflow.xml");
            assert!(!scripts_are_new || folder.is_some_and(|xml| xml.contains("'2'")), "{calls}: HDFS comes first");
        }
        world.deploy().await.unwrap();
        let names: Vec<String> = world.everything().into_iter().map(|(name, _)| name).collect();
        let all = ["defaults/p.js", "hdfs-root/p/lib/code.jar", "hdfs-root/p/workflow.xml", "workflows/p.js"];
        assert_eq!(names, all, "{calls}: nothing half-written is left");
        assert!(world.read("defaults/p.js").unwrap().contains("'2'"), "{calls}");
        if ended.is_ok() {
            break;
        }
    }
    assert!(broken > 8, "it broke off in the middle {broken} times");
}

#[tokio::test]
async fn a_step_that_fails_is_told_with_what_was_done_and_what_was_not() {
    let world = World::new();
    world.write_project("1");
    let calls = calls_before(&world, "defaults/p.js").await;
    let denied = StorageError::Denied { place: "PLACE".to_owned(), detail: "quota".to_owned() };
    let site = world.failing_after(calls, denied);
    let prepared = prepare(project(), Some(world.bundle().unwrap()), site, NOW.parse().unwrap()).await.unwrap();
    let error = prepared.carry_out(|_| ()).await.unwrap_err();
    let hint = "what is not done is as it was; once that is mended, do the same again: it goes on from there";
    assert_eq!(error.hint(), Some(hint));
    let DeployError::Incomplete { done, step, cause, left } = error else { panic!("{error}") };
    let dir = world.folder.path().display();
    assert_eq!(done, [format!("put the files of hdfs/ at file:{dir}/hdfs-root/p")]);
    assert_eq!(step, format!("write file:{dir}/defaults/p.js"));
    assert_eq!(left, [step, format!("write file:{dir}/workflows/p.js")]);
    assert_eq!(cause.to_string(), "use PLACE: permission denied (quota)");
}

/// How many calls it takes until a file is written.
async fn calls_before(world: &World, name: &str) -> usize {
    let cause = StorageError::NotFound { place: String::new() };
    let mut calls = 0;
    loop {
        calls += 1;
        let trial = World::new();
        trial.write_project("1");
        let site = trial.failing_after(calls, cause.clone());
        if let Ok(prepared) = prepare(project(), Some(world.bundle().unwrap()), site, NOW.parse().unwrap()).await {
            let _ = prepared.carry_out(|_| ()).await;
            if trial.read(name).is_some() {
                return calls - 1;
            }
        }
    }
}

#[tokio::test]
async fn folders_that_can_t_be_written_to_are_told_before_anything_is_touched() {
    let world = World::new();
    world.write_project("1");
    let denied = StorageError::Denied { place: "x".to_owned(), detail: "Permission denied".to_owned() };
    let mut told = Vec::new();
    for calls in 0..20 {
        let site = world.failing_after(calls, denied.clone());
        let Ok(prepared) = prepare(project(), Some(world.bundle().unwrap()), site, NOW.parse().unwrap()).await else {
            continue;
        };
        match prepared.carry_out(|_| ()).await {
            Err(error @ DeployError::NotWritable { .. }) => told.push(error.to_string()),
            _ => break,
        }
        let all = world.everything();
        assert!(all.iter().all(|(name, _)| name.contains("/.kelos-")), "only the trial may be left: {all:?}");
    }
    let dir = world.folder.path().display();
    let expected =
        format!("write to the folder of workflows file:{dir}/workflows: permission denied (Permission denied)");
    assert_eq!(told[0], expected);
    let expected =
        format!("write to the folder of defaults file:{dir}/defaults: permission denied (Permission denied)");
    assert!(told.contains(&expected), "{told:?}");
}

#[tokio::test]
async fn what_a_crash_left_is_in_nobody_s_way() {
    let world = World::new();
    world.write_project("2");
    world.write("hdfs-root/.p.new/half.jar", "hal");
    world.write("hdfs-root/.p.old/workflow.xml", "<workflow-app name='1'/>");
    world.write("workflows/.p.js.1-1.unfinished", "celos.define");
    world.deploy().await.unwrap();
    let names: Vec<String> = world.everything().into_iter().map(|(name, _)| name).collect();
    assert!(!names.iter().any(|name| name.contains("/.p.new") || name.contains("/.p.old")), "{names:?}");
    assert_eq!(world.read("hdfs-root/p/lib/code.jar").as_deref(), Some("2"));
}

#[tokio::test]
async fn scripts_with_errors_are_refused() {
    let world = World::new();
    world.write("project/workflow.js", "celos.defineWorkflow({id: 'w'");
    assert_eq!(world.refusal().await, "deploy p: p.js would break: p.js:1:30: SyntaxError: Unexpected end of input");
}

#[tokio::test]
async fn a_defaults_file_that_nobody_imports_is_read_too() {
    let world = World::new();
    world.write("project/workflow.js", "");
    world.write("project/defaults.js", "var ok = 1;\nvar broken = ;");
    let told = world.refusal().await;
    assert!(told.starts_with("deploy p: defaults/p.js would break: defaults/p.js:2:"), "{told}");
    world.write("project/defaults.js", "var ok = definedByTheOneWhoImports + 1;");
    world.deploy().await.unwrap();
}

#[tokio::test]
async fn other_projects_are_kept_from_harm() {
    let world = World::new();
    world.write("workflows/other.js", &workflow("taken", "importDefaults('p');", "x: SHARED"));
    world.write("defaults/p.js", "var SHARED = 1;");
    world.write("project/workflow.js", &workflow("taken", "", ""));
    world.write("project/defaults.js", "var SHARED = 1;");
    let told = world.refusal().await;
    assert!(
        told.contains("Workflow with this ID already exists: taken is defined in other.js:3 and in p.js:3"),
        "{told}"
    );
    world.write("project/workflow.js", &workflow("free", "", ""));
    world.write("project/defaults.js", "var RENAMED = 1;");
    let told = world.refusal().await;
    assert!(told.starts_with("deploy p: other.js would break: other.js:2:"), "{told}");
    let error = world.prepare(None).await.err().unwrap().to_string();
    assert_eq!(error, "undeploy p: other.js would break");
    world.write("workflows/broken.js", "celos.nonsense(");
    world.write("project/defaults.js", "var SHARED = 2;");
    world.deploy().await.unwrap();
}

#[tokio::test]
async fn the_layout_is_checked() {
    let world = World::new();
    let layout = "; expected workflow.js, and defaults.js where needed, or the folders workflows and defaults; and the folder \
                  hdfs for Oozie";
    let nothing = "deploy from DIR/project: it has no workflow.js and no scripts in a folder workflows";
    assert_eq!(world.refusal().await, format!("{nothing}{layout}"));
    world.write("project/workflows.js", "");
    assert_eq!(world.refusal().await, format!("{nothing}; it has workflows.js{layout}"));
    world.write("project/workflows/README.md", "");
    world.write("project/workflows/a.test.js", "");
    assert_eq!(world.refusal().await, format!("{nothing}; it has workflows.js{layout}"));
    world.write("project/workflows/a b.js", "");
    let refused = "deploy from DIR/project: the file \"workflows/a b.js\" has another name than expected: letters, digits, \
                   \"-\", \"_\" and \".\"";
    assert_eq!(world.refusal().await, refused);
    std::fs::rename(world.path("project/workflows/a b.js"), world.path("project/workflows/ab.js")).unwrap();
    world.write("project/defaults/lib/x.js", "");
    let refused = "deploy from DIR/project: defaults/lib is a folder, expected all files directly in defaults";
    assert_eq!(world.refusal().await, refused);
    std::fs::remove_dir_all(world.path("project/defaults")).unwrap();
    world.write("project/workflow.js", "");
    let both = "deploy from DIR/project: it has workflow.js and the folder workflows: expected one of them";
    assert_eq!(world.refusal().await, both);
    std::fs::remove_dir_all(world.path("project/workflows")).unwrap();
    world.write("project/workflow.js", "");
    world.write("project/hdfs", "");
    assert_eq!(world.refusal().await, "deploy from DIR/project: hdfs is a file, expected a folder");
    std::fs::remove_file(world.path("project/hdfs")).unwrap();
    world.write("project/hdfs/workflow.xml", "<workflow-app>\n<start></workflow-app>");
    let told = world.refusal().await;
    assert!(told.starts_with("deploy from hdfs/workflow.xml: it is not well-formed XML: "), "{told}");
    assert!(told.contains("2:"), "{told}");
    world.write("project/hdfs/workflow.xml", "<configuration/>");
    let told = "deploy from hdfs/workflow.xml: its root element is <configuration>, expected <workflow-app>";
    assert_eq!(world.refusal().await, told);
    let fifo = |name: &str| {
        assert!(std::process::Command::new("mkfifo").arg(world.path(name)).status().unwrap().success());
    };
    fifo("project/hdfs/fifo");
    assert_eq!(world.refusal().await, "deploy from DIR/project: hdfs/fifo is neither a file nor a folder");
    std::fs::remove_file(world.path("project/workflow.js")).unwrap();
    fifo("project/workflow.js");
    assert_eq!(world.refusal().await, "deploy from DIR/project: workflow.js is a FIFO, expected a file");
}

#[tokio::test]
async fn what_oozie_runs_has_to_be_there() {
    let world = World::new();
    let root = world.path("hdfs-root");
    let root = root.to_str().unwrap();
    let runs = |path: &str| workflow("w", "", &format!("'oozie.wf.application.path': '{path}'"));
    world.write("project/workflow.js", &runs(&format!("hdfs://nn:8020{root}/p/sub/workflow.xml")));
    let missing = "deploy p: workflow \"w\" runs DIR/hdfs-root/p/sub/workflow.xml, which hdfs/ is to become, but there is \
                   no such folder in the deployment directory";
    assert_eq!(world.refusal().await, missing);
    world.write("project/hdfs/workflow.xml", "<workflow-app/>");
    let missing =
        "deploy p: workflow \"w\" runs DIR/hdfs-root/p/sub/workflow.xml, but there is no sub/workflow.xml in hdfs/";
    assert_eq!(world.refusal().await, missing);
    world.write("project/workflow.js", &runs(&format!("{root}/p")));
    assert_eq!(world.deploy().await.unwrap().notes, Vec::<String>::new());
    world.write("project/workflow.js", &runs("/elsewhere/workflow.xml"));
    let notes = world.deploy().await.unwrap().notes;
    let own = format!("{root}/p");
    assert_eq!(
        notes,
        [format!("workflow \"w\" runs /elsewhere/workflow.xml, which is not in {own}, where hdfs/ goes")]
    );
    std::fs::remove_dir_all(world.path("project/hdfs")).unwrap();
    world.write("project/workflow.js", "");
    let notes = world.deploy().await.unwrap().notes;
    assert_eq!(notes, ["there is no folder hdfs: HDFS is not touched, no workflow uses Oozie"]);
    assert!(world.read("hdfs-root/p/workflow.xml").is_some());
}

#[tokio::test]
async fn a_defaults_file_that_is_gone_is_said_to_go() {
    let world = World::new();
    world.write_project("1");
    world.deploy().await.unwrap();
    std::fs::remove_file(world.path("project/defaults.js")).unwrap();
    world.write("project/workflow.js", &workflow("w", "", ""));
    let plan = world.deploy().await.unwrap();
    assert_eq!(plan.notes, ["there is no defaults.js: the one that is deployed goes"]);
    assert_eq!(world.read("defaults/p.js"), None);
}

#[tokio::test]
async fn folders_of_the_target_have_to_be_there() {
    let world = World::new();
    world.write_project("1");
    std::fs::remove_dir(world.path("defaults")).unwrap();
    let error = world.deploy().await.unwrap_err().to_string();
    let dir = world.folder.path().display();
    let told = "nothing is there; make it, or name another one in the target file";
    assert_eq!(error, format!("find the folder of defaults file:{dir}/defaults: {told}"));
    world.write("defaults", "");
    let error = world.deploy().await.unwrap_err().to_string();
    assert_eq!(error, format!("find the folder of defaults file:{dir}/defaults: it is a file, expected a folder"));
}

#[tokio::test]
async fn a_target_file_is_read_and_hadoop_s_files_only_where_they_are_needed() {
    let world = World::new();
    world.write_project("1");
    let dir = world.folder.path().display().to_string();
    let target = format!(
        "{{\"hadoop.hdfs-site.xml\": \"file://{dir}/hdfs-site.xml\", \"hadoop.core-site.xml\": \
         \"file://{dir}/core-site.xml\", \"workflows.dir.uri\": \"file://{dir}/workflows\", \"defaults.dir.uri\": \
         \"file://{dir}/defaults\",}}"
    );
    world.write("target.json", &target);
    let of_target = |name: &str| {
        let url = format!("file://{dir}/{name}");
        async move {
            Site::of_target(
                &url,
                None,
                "/user/celos/app",
                StorageConfig::default(),
                std::sync::Arc::new(kelos_door_stolos::TasksJson),
            )
            .await
        }
    };
    let now: Timestamp = NOW.parse().unwrap();
    let error =
        prepare(project(), world.bundle().ok(), of_target("target.json").await.unwrap(), now).await.err().unwrap();
    assert_eq!(error.to_string(), format!("find the core-site.xml file:{dir}/core-site.xml: nothing is there"));
    let hint = "nothing was changed; correct the target file, or leave HDFS as it is (--no-hdfs)";
    assert_eq!(error.hint(), Some(hint));
    std::fs::remove_dir_all(world.path("project/hdfs")).unwrap();
    let prepared = prepare(project(), world.bundle().ok(), of_target("target.json").await.unwrap(), now).await.unwrap();
    prepared.carry_out(|_| ()).await.unwrap();
    assert!(world.read("workflows/p.js").is_some());
    let error = of_target("nothing.json").await.err().unwrap().to_string();
    assert_eq!(error, format!("find the target file file:{dir}/nothing.json: nothing is there"));
    let storage = Storage::new(StorageConfig::default());
    assert!(HdfsRoot::of_storage("celos", storage).is_err());
}

#[tokio::test]
async fn an_application_with_schedules_is_deployed_and_changed() {
    let world = World::new();
    let text = |met: &str| {
        format!(
            "application({{name: 'Shop', 'app.deploy.update.schedules': false}});\n\
             program('wf', celos.oozieExternalService({{}}, 'http://oozie'));\n\
             schedule('s', 'wf').withConcurrency(1).{met}().triggerOnPartitions('ds', 4);\n"
        )
    };
    world.write("project/workflow.js", &text("abortIfNotMet"));
    let plan = world.deploy().await.unwrap();
    let of = |plan: &Plan| -> Vec<String> {
        let words = |one: &kelos_door_celos::deploy::WorkflowChange| {
            let parts: Vec<&str> = one.parts.iter().map(|part| part.as_str()).collect();
            format!("{} of {} {}", one.id, one.project, parts.join(", ")).trim_end().to_owned()
        };
        plan.workflows.iter().map(words).collect()
    };
    assert_eq!(of(&plan), ["Shop.s of Shop", "Shop.wf of Shop"]);
    assert_eq!(plan.slots.created.len(), 0);
    world.write("project/workflow.js", &text("waitUntilMet"));
    assert_eq!(of(&world.deploy().await.unwrap()), ["Shop.s of Shop constraints"]);
    world.write("project/workflow.js", "schedule('s', 'wf').triggerByTime('0 25 * * *');");
    let refused = world.refusal().await;
    assert!(refused.contains("schedule \"s\": triggerByTime: hour field \"25\" is out of range"), "{refused}");
}
