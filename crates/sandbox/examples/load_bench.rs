//! Measures the time of loading a folder of 1,000 files: cold, unchanged, and after one change.
//!
//! ```text
//! cargo run --release -p kelos-sandbox --example load_bench [FILES]
//! ```

use std::fs;
use std::path::Path;
use std::time::Instant;

use kelos_model::SlotKey;
use kelos_model::trigger::Trigger;
use kelos_sandbox::{Folders, Host, Limits, Scripts};

const DEFAULTS: &str = r#"
var CELOS_DEFAULT_HDFS = "hdfs://nameservice1";
var CELOS_DEFAULT_OOZIE = "http://oozie.example:11000/oozie";
var CELOS_DEFAULT_OOZIE_PROPERTIES = {"user.name": "celos", "jobTracker": "yarnrm", "nameNode": CELOS_DEFAULT_HDFS};
function ready(path) {
    return celos.hdfsCheckTrigger(path + "/${year}-${month}-${day}/${hour}00/_READY");
}
"#;

/// A definition as they are in practice: about 1.2 kB, a helper, two workflows.
fn definition(n: usize) -> String {
    format!(
        r#"// Counts the words of source {n}, in both data centres, as soon as the hour's input is complete.
celos.importDefaults("site");

var input = "/input/source-{n}/";
var output = "/output/source-{n}/";

function define(dc, hours) {{
    var here = ready(input + dc);
    celos.defineWorkflow({{
        "id": "count-{n}-" + dc,
        "schedule": celos.cronSchedule("0 0 0/" + hours + " * * ?"),
        "schedulingStrategy": celos.serialSchedulingStrategy(3),
        "startTime": "2015-09-01T00:00Z",
        "maxRetryCount": 10,
        "waitTimeoutSeconds": 60 * 60 * 24 * 2,
        "trigger": celos.andTrigger(
            here,
            celos.offsetTrigger(60 * 60 * hours, here),
            celos.orTrigger(celos.successTrigger("import-{n}"), celos.delayTrigger(60 * 60 * 12)),
            celos.functionTrigger(function (slot, now) {{ return slot.getScheduledTime().getHour() !== 3; }})),
        "externalService": celos.oozieExternalService(function (slot) {{
            return {{
                "oozie.wf.application.path": "/count/workflow.xml",
                "inputPath": input + dc + "/${{year}}-${{month}}-${{day}}/${{hour}}00/",
                "outputPath": output + dc + "/" + slot.getScheduledTime().year()
            }};
        }})
    }});
}}
define("nyc", 1);
define("lax", 6);
"#
    )
}

fn resident_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse().ok())
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    println!("{what:<34} {:>9.2} ms", began.elapsed().as_secs_f64() * 1000.0);
    done
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: usize = std::env::args().nth(1).map_or(Ok(1000), |count| count.parse())?;
    let folder = tempfile::tempdir()?;
    let folders = Folders { workflows: folder.path().join("workflows"), defaults: folder.path().join("defaults") };
    fs::create_dir(&folders.workflows)?;
    fs::create_dir(&folders.defaults)?;
    fs::write(folders.defaults.join("site.js"), DEFAULTS)?;
    let path = |n: usize| folders.workflows.join(format!("count-{n}.js"));
    for n in 0..files {
        fs::write(path(n), definition(n))?;
    }
    println!("{files} files of {} bytes", definition(0).len());
    for threads in [1, 2] {
        println!("-- {threads} thread(s)");
        run(&folders, threads, &path(0))?;
    }
    Ok(())
}

fn run(folders: &Folders, threads: usize, changed: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let limits = Limits { threads, ..Limits::default() };
    let host = Host::dry();
    let scripts = Scripts::start(folders.clone(), limits, host)?;
    let loaded = timed("cold", || scripts.load());
    for problem in loaded.problems.iter().take(3) {
        println!("{problem}");
    }
    println!("{} workflows, {} evaluated, {:?} KiB resident", loaded.workflows.len(), loaded.evaluated, resident_kib());
    // A stamp is trusted once it is older than two seconds; until then the text is read and compared.
    let loaded = timed("unchanged, texts compared", || scripts.load());
    println!("{} evaluated", loaded.evaluated);
    std::thread::sleep(std::time::Duration::from_millis(2100));
    let _settle = scripts.load();
    timed("unchanged", || scripts.load());
    fs::write(changed, definition(0) + "\n// changed\n")?;
    timed("one file changed", || scripts.load());
    let key = SlotKey::parse("2015-09-13T13:00Z")?;
    let functions = loaded.workflows.iter().filter_map(|workflow| match workflow.trigger.nested().last() {
        Some(Trigger::Function { function }) => Some((function.clone(), workflow.id.clone())),
        _ => None,
    });
    let functions: Vec<_> = functions.take(100).collect();
    timed("100 calls, worlds made again", || {
        functions.iter().filter(|(f, id)| scripts.ask(f, id, &key).is_ok()).count()
    });
    if let Some((function, id)) = functions.first() {
        timed("10,000 calls, world kept", || (0..10_000).filter(|_| scripts.ask(function, id, &key).is_ok()).count());
    }
    Ok(())
}
