//! Jobs as async functions: their inputs, outputs, failures, ends and restarts.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kelos::embed::{Context, EndedSlot, Places, Project, Retry, RunningProject, ScheduledTime, flow, job, step};
use kelos::{MemoryStore, RunId, SlotState};
use kelos_core::Kill;
use kelos_executors::local::read_log;
use kelos_executors::run_ref;
use kelos_model::Actor;
use kelos_store::SlotFilter;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Order {
    id: String,
    items: u32,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Bill {
    total: u32,
}

async fn bill(context: Context, order: Order, price: u32) -> Result<Bill, String> {
    context.log(format!("bill of {}", order.id));
    Ok(Bill { total: order.items * price })
}

/// Runs a test on a runtime of its own.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

fn output(running: &RunningProject, run: &RunId) -> String {
    let dir = running.node().launcher().dirs().path(&run_ref(run));
    String::from_utf8(read_log(&dir, 0, 1 << 20).unwrap().bytes).unwrap()
}

fn last_run(ended: &EndedSlot) -> &RunId {
    &ended.run.as_ref().expect("a run").id
}

#[test]
fn a_function_gets_its_input_and_gives_its_output() {
    run(async {
        let project = Project::new("shop", "1.0").add(job("bill", bill).with(5).on_demand());
        let running = project.start().await.unwrap();
        let ended = running.run("bill", &Order { id: "a".to_owned(), items: 3 }).await.unwrap();
        assert_eq!((ended.state, ended.output::<Bill>().unwrap()), (SlotState::Succeeded, Bill { total: 15 }));
        assert_eq!(output(&running, last_run(&ended)), "bill of a\n");
        running.stop().await;
    });
}

#[test]
fn an_unsound_input_is_the_end_and_says_so() {
    run(async {
        let running = Project::new("shop", "1.0").add(job("bill", bill).with(5).on_demand()).start().await.unwrap();
        let ended = running.run("bill", &BTreeMap::from([("id", "a")])).await.unwrap();
        let expected = "its input is unsound: missing field `items` at line 1 column 10: {\"id\":\"a\"}";
        assert_eq!((ended.state, ended.reason()), (SlotState::Failed, Some(expected)));
        assert_eq!(last_run(&ended).number, 1, "no attempt follows");
        running.stop().await;
    });
}

#[test]
fn unknown_jobs_are_refused() {
    run(async {
        let running = Project::new("shop", "1.0").add(job("bill", bill).with(5).on_demand()).start().await.unwrap();
        let refused = running.start("bil", &()).await.unwrap_err().to_string();
        assert!(refused.contains("bil"), "{refused}");
        running.stop().await;
    });
}

/// Fails twice, once by an error with a cause and once by a panic.
async fn shaky(
    context: Context,
    _: (),
    calls: Arc<AtomicU32>,
) -> Result<Vec<String>, Box<dyn std::error::Error + Send + Sync>> {
    match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Err(std::io::Error::other("the disk is full"))?,
        1 => panic!("index {} is out of range", 7),
        _ => Ok(context
            .previous_failures()
            .into_iter()
            .map(|one| format!("{}: {}", one.run.number, one.reason))
            .collect()),
    }
}

#[test]
fn errors_and_panics_are_failed_attempts() {
    run(async {
        let shaky = job("shaky", shaky).with(Arc::default()).retry(Retry::fixed(Duration::ZERO).times(5)).on_demand();
        let running = Project::new("shop", "1.0").add(shaky).start().await.unwrap();
        let ended = running.run("shaky", &()).await.unwrap();
        let failures = ended.output::<Vec<String>>().unwrap();
        assert_eq!(failures, ["1: the disk is full", "2: panicked: index 7 is out of range"]);
        running.stop().await;
    });
}

async fn parse(_: Context, text: String, calls: Arc<AtomicU32>) -> Result<u8, std::num::ParseIntError> {
    calls.fetch_add(1, Ordering::SeqCst);
    text.parse()
}

#[test]
fn no_attempt_follows_an_error_that_is_final() {
    run(async {
        let calls = Arc::new(AtomicU32::new(0));
        let parse = job("parse", parse).unless(|_| true).with(calls.clone()).on_demand();
        let running = Project::new("shop", "1.0").add(parse).start().await.unwrap();
        let ended = running.run("parse", &"x").await.unwrap();
        assert_eq!(ended.reason(), Some("invalid digit found in string"));
        assert_eq!((ended.state, calls.load(Ordering::SeqCst)), (SlotState::Failed, 1));
        running.stop().await;
    });
}

#[test]
fn an_output_that_is_too_large_fails_with_what_to_do() {
    run(async {
        let large = job("large", async |_: Context, size: usize, ()| Ok::<_, String>("x".repeat(size)));
        let running = Project::new("shop", "1.0").add(large.with(()).on_demand()).start().await.unwrap();
        let ended = running.run("large", &(100 << 20)).await.unwrap();
        let reason = ended.reason().unwrap();
        assert!(reason.contains("expected 65536 at the most: store it elsewhere"), "{reason}");
        running.stop().await;
    });
}

#[test]
fn what_takes_too_long_fails_and_what_is_killed_ends() {
    run(async {
        let slow = job("slow", async |_: Context, (): (), ()| pending::<Result<(), String>>().await).with(());
        let slow = slow.timeout(Duration::from_millis(20)).grace(Duration::ZERO).retry(Retry::never()).on_demand();
        let polite = job("polite", async |context: Context, (): (), ()| {
            context.cancel().asked().await;
            Err::<(), _>("asked to end")
        });
        let polite = polite.with(()).on_demand();
        let running = Project::new("shop", "1.0").add(slow).add(polite).start().await.unwrap();
        let ended = running.run("slow", &()).await.unwrap();
        assert_eq!((ended.state, ended.reason()), (SlotState::Failed, Some("timed out after 0.02 s")));

        let slot = running.start("polite", &()).await.unwrap();
        running.handle().ask(&Actor::person("ann"), Kill { slot: slot.clone(), reason: None }).await.unwrap();
        assert_eq!(running.end(&slot).await.unwrap().state, SlotState::Killed);
        running.stop().await;
    });
}

#[test]
fn a_program_ends_with_its_run_and_its_output_is_kept() {
    run(async {
        let shell =
            job("shell", async |context: Context, script: String, ()| context.command("sh", ["-c", &script]).await);
        let shell = shell.with(()).retry(Retry::never()).on_demand();
        let running = Project::new("shop", "1.0").add(shell).start().await.unwrap();
        let ended = running.run("shell", &"echo one; echo two >&2; exit 3").await.unwrap();
        assert_eq!(ended.reason(), Some("run sh: exit status: 3"));
        let lines = output(&running, last_run(&ended));
        let mut lines: Vec<&str> = lines.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["one", "run sh: exit status: 3", "two"]);
        running.stop().await;
    });
}

#[test]
fn state_survives_a_restart_and_once_is_once() {
    let folder = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let project = || {
        let setup = job("setup", async |_: Context, (): (), calls: Arc<AtomicU32>| {
            calls.fetch_add(1, Ordering::SeqCst);
            Ok::<_, String>(())
        });
        Project::new("shop", "1.0").folder(folder.path()).add(setup.with(calls.clone()).once())
    };
    for _ in 0..2 {
        run(async {
            let running = project().start().await.unwrap();
            let slots = running.reader().slots(&kelos::SlotFilter::default(), kelos::PageRequest::newest(9)).unwrap();
            assert_eq!(slots.rows.len(), 1);
            assert_eq!(running.end(&slots.rows[0].id).await.unwrap().state, SlotState::Succeeded);
            running.stop().await;
        });
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn what_was_live_when_the_program_ended_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let calls = Arc::new(AtomicU32::new(0));
    let project = || {
        let twice = job("twice", async |context: Context, (): (), calls: Arc<AtomicU32>| {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                pending::<()>().await;
            }
            Ok::<_, String>(context.previous_failures().into_iter().map(|one| one.reason).collect::<Vec<_>>())
        });
        let twice = twice.with(calls.clone()).retry(Retry::never()).on_demand();
        Project::new("shop", "1.0").folder(folder.path()).add(twice)
    };
    let slot = run(async {
        let running = project().start().await.unwrap();
        let slot = running.start("twice", &()).await.unwrap();
        let mut commits = running.handle().watch_commits();
        while running.reader().slot(&slot).unwrap().is_none_or(|slot| slot.state != SlotState::Running) {
            commits.changed().await.unwrap();
        }
        // As if the program were killed: the runtime ends with all that runs in it.
        running.handle().stop().await;
        slot
    });
    run(async {
        let running = project().start().await.unwrap();
        let ended = running.end(&slot).await.unwrap();
        assert_eq!(ended.output::<Vec<String>>().unwrap(), ["the program that did it has ended"]);
        running.stop().await;
    });
}

#[test]
fn all_mistakes_come_at_once_with_their_lines() {
    let cores = Places::new("cores", 4);
    let first = job("a", bill).with(1).on_demand();
    let line = line!() - 1;
    let project = Project::new("shop", "1.0")
        .add(first)
        .add(job("a", bill).with(1).on_demand())
        .add(job("b/c", bill).with(1).on_demand())
        .add(job("d", bill).with(1).on((&cores, 5)).on_demand())
        .add(job("e", async |_: Context, _: ScheduledTime, ()| Ok::<_, String>(())).with(()).cron("61 * * * *"))
        .add(job("f", bill).with(1).timeout(Duration::ZERO).at_a_time(0))
        .add(
            job("g", async |_: Context, _: ScheduledTime, ()| Ok::<_, String>(()))
                .with(())
                .cron("0 6 * * *")
                .zone("Mars/Base"),
        );
    let mistakes = project.check().unwrap_err();
    let words: Vec<String> = mistakes.0.iter().map(|one| format!("{}: {}", one.line - line, one.message)).collect();
    insta::assert_snapshot!(words.join("\n").replace(&format!("embed.rs:{line}"), "embed.rs:LINE"));
    assert!(mistakes.0.iter().all(|one| one.file.ends_with("embed.rs")));
    let text = mistakes.to_string();
    assert!(text.starts_with("define the project: 8 mistakes\n"), "{text}");
    assert!(text.contains("hint: end its definition with"), "{text}");
}

#[test]
fn jobs_that_wait_for_each_other_are_a_mistake() {
    let waits = |id: &str, other: &str| {
        let one = job(id, async |_: Context, _: ScheduledTime, ()| Ok::<_, String>(())).with(()).cron("0 6 * * *");
        one.when(kelos::Trigger::Success { workflow: other.parse().unwrap() })
    };
    let mistakes = Project::new("shop", "1.0").add(waits("a", "b")).add(waits("b", "a")).check().unwrap_err();
    assert_eq!(mistakes.0[0].message, "job \"a\": it waits for itself: a -> b -> a");
}

#[test]
fn a_tag_is_paused_as_a_whole() {
    run(async {
        let one = |id: &str| job(id, async |_: Context, (): (), ()| Ok::<_, String>(())).with(()).on_demand();
        let project = Project::new("shop", "1.0").add(one("a").tags(["crm"])).add(one("b").tags(["crm"])).add(one("c"));
        let running = project.start().await.unwrap();
        let paused = running.pause_tag("crm").await.unwrap();
        assert_eq!(paused.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let slot = running.start("a", &()).await.unwrap();
        running.run("c", &()).await.unwrap();
        assert!(!running.reader().slot(&slot).unwrap().unwrap().state.is_final());
        running.resume_tag("crm").await.unwrap();
        assert!(running.end(&slot).await.unwrap().is_success());
        assert_eq!(running.pause_all().await.unwrap().len(), 3);
        let slot = running.start("c", &()).await.unwrap();
        assert!(!running.reader().slot(&slot).unwrap().unwrap().state.is_final());
        assert_eq!(running.resume_all().await.unwrap().len(), 3);
        assert!(running.end(&slot).await.unwrap().is_success());
        running.stop().await;
    });
}

#[test]
fn a_lock_is_held_by_one_run_at_a_time() {
    run(async {
        let busy = Arc::new(AtomicU32::new(0));
        let touch = job("touch", async |context: Context, (): (), busy: Arc<AtomicU32>| {
            let _lock = context.lock("table").await;
            assert_eq!(busy.fetch_add(1, Ordering::SeqCst), 0, "another run holds the lock");
            tokio::task::yield_now().await;
            busy.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, String>(())
        });
        let touch = touch.with(busy).retry(Retry::never()).on_demand();
        let running = Project::new("shop", "1.0").add(touch).start().await.unwrap();
        let mut slots = Vec::new();
        for _ in 0..20 {
            slots.push(running.start("touch", &()).await.unwrap());
        }
        for slot in slots {
            assert!(running.end(&slot).await.unwrap().is_success());
        }
        running.stop().await;
    });
}

#[test]
fn a_named_start_is_one_run_and_a_priority_is_its_place_in_line() {
    run(async {
        let place = Places::new("place", 1);
        let (began, order) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let state = (began.clone(), order.clone());
        let work = async |context: Context, number: u32, (began, order): (Arc<Semaphore>, Arc<Mutex<Vec<u32>>>)| {
            context.log(format!("number {number}"));
            order.lock().unwrap().push(number);
            began.acquire().await.unwrap().forget();
            Ok::<_, String>(number)
        };
        let project = Project::new("shop", "1.0")
            .add(job("work", work).with(state).on(&place).on_demand())
            .add(flow("steps", step("one", async |_: Context, (): (), ()| Ok::<_, String>(())).with(())));
        let running = project.start().await.unwrap();
        let work = || running.job("work");
        let first = work().start(&1).await.unwrap();
        let slots = [
            work().named("order-2").start(&2).await.unwrap(),
            work().named("order-3").priority(5).start(&3).await.unwrap(),
        ];
        assert_eq!(slots[0].to_string(), "work@.order-2");
        assert_eq!(work().named("order-2").start(&9).await.unwrap(), slots[0]);
        let why = running.why(&slots[0]).await.unwrap();
        assert!(why.contains("permits of pool place are held by work@"), "{why}");
        assert_eq!(running.lines(&slots[0]).await.unwrap(), [""; 0]);
        began.add_permits(3);
        for slot in slots.iter().chain([&first]) {
            assert!(running.end(slot).await.unwrap().is_success());
        }
        assert_eq!(*order.lock().unwrap(), [1, 3, 2]);
        assert_eq!(running.lines(&slots[1]).await.unwrap(), ["number 3"]);
        let refused = work().named("two words").start(&1).await.unwrap_err().to_string();
        assert!(refused.contains("\"two words\" can't name a run"), "{refused}");
        let refused = running.start("steps", &()).await.unwrap_err().to_string();
        assert!(refused.starts_with("start the job \"steps\": it is a flow; start it by `running.flow("), "{refused}");
        running.stop().await;
    });
}

#[test]
fn a_text_is_an_input_as_it_is() {
    run(async {
        let greet = async |_: Context, name: String, ()| Ok::<_, String>(format!("hello {name}"));
        let project = Project::new("hello", "1.0").add(job("greet", greet).with(()).on_demand());
        let running = project.start().await.unwrap();
        assert_eq!(running.run("greet", "Ann").await.unwrap().output::<String>().unwrap(), "hello Ann");
        running.stop().await;
    });
}

#[test]
fn a_bounded_memory_forgets_what_ended_long_ago() {
    run(async {
        let double = async |_: Context, number: u32, ()| Ok::<_, String>(2 * number);
        let project = Project::new("sums", "1.0").store(MemoryStore::keeping(500));
        let project = project.add(job("double", double).with(()).on_demand());
        let running = project.start().await.unwrap();
        let first = running.start("double", &0).await.unwrap();
        let mut last = first.clone();
        for hundred in 0..8 {
            let mut slots = Vec::new();
            for number in 0..100 {
                slots.push(running.start("double", &(100 * hundred + number)).await.unwrap());
            }
            for (number, slot) in slots.iter().enumerate() {
                let number = 100 * hundred + u32::try_from(number).unwrap();
                assert_eq!(running.end(slot).await.unwrap().output::<u32>().unwrap(), 2 * number);
                last = slot.clone();
            }
        }
        let reader = running.reader();
        assert!(reader.slot(&first).unwrap().is_none() && reader.slot(&last).unwrap().is_some());
        let gone = running.end(&first).await.unwrap_err().to_string();
        assert!(gone.ends_with("it ended long ago and was forgotten, or never was"), "{gone}");
        let slots = reader.slot_counts(&SlotFilter::default()).unwrap().values().sum::<u64>();
        assert!((500..=550).contains(&slots), "{slots} slots");
        running.stop().await;
    });
}
