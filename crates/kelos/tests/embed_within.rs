//! What is scarce, taken within runs: places, rates, programs, and what becomes of them with the end of a run.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kelos::embed::{
    CommandError, Context, Places, PlatformError, Processes, Project, Rate, Rehearsal, Retry, RunningProject, job,
};
use kelos::{RunId, SlotRef, SlotState};
use kelos_core::{InspectCapacity, Kill};

/// Runs a test on a runtime of its own.
fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

const MINUTE: Duration = Duration::from_secs(60);

fn lines(rehearsal: &Rehearsal, job: &str, slot: &SlotRef) -> Vec<String> {
    rehearsal.lines(job, &slot.key.to_string()).unwrap().to_vec()
}

fn state(rehearsal: &Rehearsal, slot: &SlotRef) -> SlotState {
    rehearsal.reader().slot(slot).unwrap().unwrap().state
}

async fn calls(context: Context, count: u32, crm: Rate) -> Result<(), PlatformError> {
    for call in 0..count {
        let _token = context.on(&crm).await?;
        context.log(format!("call {call}"));
    }
    Ok(())
}

#[test]
fn a_run_takes_the_tokens_of_a_rate_at_its_pace() {
    let crm = Rate::new("crm-api", 6, MINUTE).burst(2);
    let project = Project::new("crm", "1.0").add(job("sync", calls).with(crm.clone()).may_use(&crm).on_demand());
    let mut rehearsal = Rehearsal::at("2026-03-28T12:00Z", project).unwrap();
    let first = rehearsal.start("sync", &4).unwrap();
    let second = rehearsal.start("sync", &1).unwrap();
    rehearsal.run_until("2026-03-28T12:00:05Z").unwrap();
    assert_eq!(lines(&rehearsal, "sync", &first), ["call 0", "call 1"]);
    let why = rehearsal.why("sync", &first.key.to_string()).unwrap();
    assert!(why.contains("waits for crm-api: next token at 2026-03-28T12:00:10Z"), "{why}");
    rehearsal.run_until("2026-03-28T12:00:25Z").unwrap();
    assert_eq!((state(&rehearsal, &first), state(&rehearsal, &second)), (SlotState::Succeeded, SlotState::Running));
    rehearsal.run_until("2026-03-28T12:00:35Z").unwrap();
    assert_eq!(state(&rehearsal, &second), SlotState::Succeeded);
    // Tokens that are spent leave no event behind.
    let events = rehearsal.reader().slot_runs(&first).unwrap().len();
    assert_eq!(events, 1);
}

/// Takes a place, and keeps it until a rate lets it go on.
async fn holds(context: Context, name: String, (yarn, tick): (Places, Rate)) -> Result<(), PlatformError> {
    let place = context.on(&yarn).await?;
    context.log(format!("{name} has it"));
    drop(place);
    context.on((&yarn, &tick)).await?.call(async { context.log(format!("{name} has both")) }).await;
    Ok(())
}

#[test]
fn two_jobs_share_a_place_within_their_runs() {
    let (yarn, tick) = (Places::new("yarn", 1), Rate::new("tick", 1, MINUTE));
    let one = |id: &str| {
        job(id, holds).with((yarn.clone(), tick.clone())).may_use((&yarn, &tick)).retry(Retry::never()).on_demand()
    };
    let project = Project::new("shop", "1.0").add(one("a")).add(one("b"));
    let mut rehearsal = Rehearsal::at("2026-03-28T12:00Z", project).unwrap();
    let a = rehearsal.start("a", &"a").unwrap();
    let b = rehearsal.start("b", &"b").unwrap();
    rehearsal.run_until("2026-03-28T12:00:01Z").unwrap();
    // The second one waits for the token, and holds no place meanwhile.
    let capacity = rehearsal.ask(InspectCapacity).unwrap();
    let pool = |name: &str| capacity.pools.iter().find(|pool| pool.pool.as_str() == name).unwrap();
    assert_eq!((pool("yarn").held, pool("yarn").queued), (0, 1));
    assert!(pool("tick").first.iter().all(|waiter| waiter.is_within));
    rehearsal.run_until("2026-03-28T12:01:01Z").unwrap();
    assert_eq!((state(&rehearsal, &a), state(&rehearsal, &b)), (SlotState::Succeeded, SlotState::Succeeded));
    assert_eq!(lines(&rehearsal, "b", &b), ["b has it", "b has both"]);
}

#[test]
fn what_can_never_be_given_is_refused_with_what_to_do() {
    async fn ask(context: Context, wish: u32, (crm, yarn): (Rate, Places)) -> Result<(), PlatformError> {
        let _held = match wish {
            0 => context.on(Places::new("gpu", 3)).await?,
            1 => context.on((&yarn, 3)).await?,
            2 => context.on((&crm, 4)).await?,
            3 => {
                let _held = context.on(&yarn).await?;
                context.on(&crm).await?
            }
            _ => context.on((&yarn, 0)).await?,
        };
        Ok(())
    }
    let (crm, yarn) = (Rate::new("crm-api", 60, MINUTE).burst(3), Places::new("yarn", 2));
    let ask = job("ask", ask).with((crm.clone(), yarn.clone())).may_use((&crm, &yarn)).retry(Retry::never());
    let project = Project::new("shop", "1.0").add(ask.on_demand());
    let mut rehearsal = Rehearsal::at("2026-03-28T12:00Z", project).unwrap();
    let mut reason = |wish: u32| {
        let slot = rehearsal.start("ask", &wish).unwrap();
        let run = rehearsal.reader().slot_runs(&slot).unwrap().pop().unwrap();
        run.outcome.unwrap().to_string()
    };
    assert_eq!(reason(0), "take gpu: \"gpu\" is no platform of this job: add `.may_use(&…)` with it to the job");
    assert_eq!(reason(1), "take yarn: 3 permits of \"yarn\" are asked for, which has 2: ask for fewer");
    assert_eq!(
        reason(2),
        "take crm-api: 4 tokens of \"crm-api\" are asked for, of which at most 3 add up: ask for fewer, or give it a larger burst"
    );
    assert_eq!(
        reason(3),
        "take crm-api: the run has taken yarn and not returned it: take everything at once, `context.on((&a, &b))`"
    );
    assert_eq!(reason(4), "take yarn: no permit is asked for: expected at least one");
}

/// Takes the place and keeps it for ever.
async fn keep(context: Context, (): (), place: Places) -> Result<(), PlatformError> {
    let _held = context.on(&place).await?;
    context.progress("has it");
    tokio::select! {
        () = context.cancel().asked() => Ok(()),
        () = pending() => Ok(()),
    }
}

async fn note_is(running: &RunningProject, slot: &SlotRef, note: &str) {
    let executor = running.handle().executors().get("function");
    let run = RunId { slot: slot.clone(), number: 1 };
    while executor.note(&run).as_deref() != Some(note) {
        tokio::task::yield_now().await;
    }
}

#[test]
fn a_run_that_is_killed_while_it_waits_ends_and_one_that_holds_returns_it() {
    run(async {
        let place = Places::new("place", 1);
        let keep = job("keep", keep).with(place.clone()).may_use(&place).retry(Retry::never()).on_demand();
        let running = Project::new("shop", "1.0").add(keep).start().await.unwrap();
        let holder = running.start("keep", &()).await.unwrap();
        note_is(&running, &holder, "has it").await;
        let waiter = running.start("keep", &()).await.unwrap();
        let third = running.start("keep", &()).await.unwrap();
        note_is(&running, &waiter, "waits for place").await;
        note_is(&running, &third, "waits for place").await;
        let kill = |slot: &SlotRef| Kill { slot: slot.clone(), reason: None };
        running.ask(kill(&waiter)).await.unwrap();
        assert_eq!(running.end(&waiter).await.unwrap().state, SlotState::Killed);
        running.ask(kill(&holder)).await.unwrap();
        note_is(&running, &third, "has it").await;
        running.stop().await;
    });
}

#[test]
fn permits_of_functions_that_died_with_their_program_are_free_again() {
    let folder = tempfile::tempdir().unwrap();
    let tries = Arc::new(AtomicU32::new(0));
    let place = Places::new("place", 1);
    let project = || {
        let body = async |context: Context, (): (), (tries, place): (Arc<AtomicU32>, Places)| {
            let _held = context.on(&place).await.map_err(|error| error.to_string())?;
            if tries.fetch_add(1, Ordering::SeqCst) == 0 {
                context.progress("has it");
                pending::<()>().await;
            }
            Ok::<_, String>(())
        };
        let one = job("keep", body).with((tries.clone(), place.clone())).may_use(&place);
        let retry = Retry::fixed(Duration::ZERO).times(3);
        Project::new("shop", "1.0").folder(folder.path()).add(one.retry(retry).grace(Duration::ZERO).on_demand())
    };
    let slot = run(async {
        let running = project().start().await.unwrap();
        let slot = running.start("keep", &()).await.unwrap();
        note_is(&running, &slot, "has it").await;
        let held = running.reader().slot(&slot).unwrap().unwrap().held;
        assert_eq!(held.len(), 1, "what it holds is in its row");
        // As if the program were killed: the runtime ends with all that runs in it.
        running.handle().stop().await;
        slot
    });
    run(async {
        let running = project().start().await.unwrap();
        let ended = running.end(&slot).await.unwrap();
        assert_eq!((ended.state, ended.run.unwrap().id.number), (SlotState::Succeeded, 2));
        assert!(running.reader().slot(&slot).unwrap().unwrap().held.is_empty());
        running.stop().await;
    });
}

#[test]
fn so_many_programs_run_at_once() {
    run(async {
        let most = Arc::new(AtomicU32::new(0));
        let body = async |context: Context, (): (), ()| {
            let programs = (0..3).map(|_| context.command("sh", ["-c", "true"]));
            for done in futures_util::future::join_all(programs).await {
                done?;
            }
            Ok::<_, CommandError>(())
        };
        let project = Project::new("shop", "1.0").add(job("fork", body).with(()).on_demand()).processes(2);
        let running = project.start().await.unwrap();
        let slots = [running.start("fork", &()).await.unwrap(), running.start("fork", &()).await.unwrap()];
        for slot in &slots {
            assert!(running.end(slot).await.unwrap().is_success());
        }
        // The log says who held how much.
        let mut held = 0;
        let page = kelos_store::PageRequest::oldest(usize::MAX);
        let until = running.reader().last_seq().unwrap();
        let filter = kelos_store::EventFilter { about: kelos_store::About::Anything, after: 0, until };
        for record in running.reader().events(&filter, page).unwrap().rows {
            if let kelos_model::Event::Slot { what, .. } = record.event {
                match what {
                    kelos_model::SlotEvent::Acquired { .. } => held += 1,
                    kelos_model::SlotEvent::Released { .. } => held -= 1,
                    _ => {}
                }
                most.fetch_max(held, Ordering::SeqCst);
            }
        }
        assert!(most.load(Ordering::SeqCst) <= 2, "{most:?}");
        running.stop().await;
    });
}

#[test]
fn circles_of_platforms_are_a_mistake() {
    let (p, q) = (Places::new("p", 1), Places::new("q", 1));
    let one = |id: &str| job(id, async |_: Context, (): (), ()| Ok::<_, String>(())).with(()).on_demand();
    let project = Project::new("shop", "1.0").add(one("a").on(&p).may_use(&q)).add(one("b").on(&q).may_use(&p));
    let mistakes = project.check().unwrap_err();
    assert_eq!(mistakes.0.len(), 1);
    assert_eq!(
        mistakes.0[0].message,
        "job \"a\": its runs may wait for each other for ever: \"a\" holds \"p\" and waits for \"q\", \"b\" holds \"q\" and waits for \"p\""
    );
    let of_one = Project::new("shop", "1.0").add(one("a").on(&p).may_use(&p)).check().unwrap_err();
    assert!(of_one.0[0].message.ends_with("\"a\" holds \"p\" and waits for \"p\""), "{of_one}");
    let programs = Processes::new(2);
    let beside =
        Project::new("shop", "1.0").add(one("a").may_use((&p, &programs))).add(one("b").on(&programs).may_use(&p));
    assert_eq!(beside.check().unwrap_err().0.len(), 1);
    let crm = Rate::new("crm-api", 6, MINUTE);
    assert!(Project::new("shop", "1.0").add(one("a").on((&p, &crm)).may_use(&crm)).check().is_ok());
}

#[test]
fn a_rehearsal_of_runs_that_wait_for_each_other_ends() {
    async fn lock_and_ask(context: Context, (): (), crm: Rate) -> Result<(), PlatformError> {
        let _lock = context.lock("one").await;
        let _token = context.on(&crm).await?;
        Ok(())
    }
    let crm = Rate::new("crm-api", 1, MINUTE);
    let work = job("work", lock_and_ask).with(crm.clone()).may_use(&crm).on_demand();
    let mut rehearsal = Rehearsal::at("2026-03-28T12:00Z", Project::new("shop", "1.0").add(work)).unwrap();
    let slots: Vec<_> = (0..3).map(|_| rehearsal.start("work", &()).unwrap()).collect();
    rehearsal.run_until("2026-03-28T12:02:01Z").unwrap();
    assert!(slots.iter().all(|slot| state(&rehearsal, slot) == SlotState::Succeeded));
}

#[test]
fn who_gives_up_waiting_stands_in_no_line() {
    async fn try_it(context: Context, name: String, place: Places) -> Result<(), PlatformError> {
        let mut waiting = Box::pin(context.on(&place));
        tokio::select! {
            biased;
            held = &mut waiting => drop(held?),
            () = tokio::task::yield_now() => {
                drop(waiting);
                context.log(format!("{name} gave up"));
            }
        }
        Ok(())
    }
    let place = Places::new("place", 1);
    let one = job("try", try_it).with(place.clone()).may_use(&place).on_demand();
    let mut rehearsal = Rehearsal::at("2026-03-28T12:00Z", Project::new("shop", "1.0").add(one)).unwrap();
    let slot = rehearsal.start("try", &"a").unwrap();
    rehearsal.run_until("2026-03-28T12:01Z").unwrap();
    assert_eq!(lines(&rehearsal, "try", &slot), ["a gave up"]);
    let capacity = rehearsal.ask(InspectCapacity).unwrap();
    assert_eq!((capacity.pools[0].held, capacity.pools[0].queued), (0, 0), "{capacity:?}");
}

#[test]
fn a_timeout_counts_the_time_of_the_rehearsal() {
    let crm = Rate::new("crm-api", 1, MINUTE);
    let sync = job("sync", calls).with(crm.clone()).may_use(&crm).timeout(MINUTE / 2).retry(Retry::never()).on_demand();
    let mut rehearsal = Rehearsal::at("2026-03-28T12:00Z", Project::new("crm", "1.0").add(sync)).unwrap();
    let slot = rehearsal.start("sync", &2).unwrap();
    rehearsal.run_until("2026-03-28T12:00:29Z").unwrap();
    assert_eq!(state(&rehearsal, &slot), SlotState::Running);
    rehearsal.run_until("2026-03-28T12:00:31Z").unwrap();
    assert_eq!(state(&rehearsal, &slot), SlotState::Failed);
}
