//! Commands at the workers of nodes while leaders change: none is killed, none is done again, and what is recorded of each is what its own
//! ledger says.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::nodes::{Ledger, Nodes};
use crate::support::within;

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than a lease of the log, which lasts 2.5 seconds, and shorter than that of a worker.
const PAUSE: Duration = Duration::from_secs(4);
/// The number of commands at a time.
const AT_A_TIME: usize = 6;

/// A disturbance of the leader.
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    /// It stands still for longer than its lease, and goes on.
    Pauses,
    /// It is killed, and started again.
    IsKilled,
    /// It is asked to end, and started again.
    Ends,
}

/// Nodes whose workers run commands.
struct Fleet {
    nodes: Nodes,
    ledger: Ledger,
}

impl Fleet {
    /// Nodes, and a workflow whose commands take so long.
    fn of(mut nodes: Nodes, shell: &str) -> Fleet {
        let ledger = Ledger::new(nodes.folder.path());
        nodes.all.iter_mut().for_each(|node| node.start());
        let leader = nodes.led();
        let script = format!(
            "celos.defineWorkflow({{ id: 'tick', schedule: celos.minutelySchedule(), trigger: celos.alwaysTrigger(), \
             schedulingStrategy: celos.serialSchedulingStrategy({AT_A_TIME}), maxRetryCount: 3, \
             externalService: celos.commandExternalService({{ shell: {:?} }}) }});\n",
            ledger.around(shell)
        );
        nodes.deploy((leader + 1) % nodes.all.len(), "tick", &script);
        Fleet { nodes, ledger }
    }

    /// Disturbs the leader, and waits until some node leads and all are up.
    fn disturb(&mut self, what: Disturbance) {
        let leader = within(PATIENCE, "a leader", || self.nodes.leader());
        println!("{what:?}: n{leader}");
        match what {
            Disturbance::Pauses => {
                self.nodes.all[leader].signal("STOP");
                std::thread::sleep(PAUSE);
                self.nodes.all[leader].signal("CONT");
            }
            Disturbance::IsKilled => {
                self.nodes.all[leader].kill();
                self.nodes.all[leader].start();
            }
            Disturbance::Ends => {
                self.nodes.all[leader].stop();
                self.nodes.all[leader].start();
            }
        }
        within(PATIENCE, "a leader", || self.nodes.leader());
    }

    /// Waits until so many runs have started and ended.
    #[track_caller]
    fn counts(&self, what: &str, holds: impl Fn((usize, usize)) -> bool) {
        within(PATIENCE, what, || holds(self.ledger.counts("tick")).then_some(()));
    }

    /// The state of each run, as the leader has recorded it.
    fn recorded(&self) -> BTreeMap<String, String> {
        let node = within(PATIENCE, "a leader", || self.nodes.leader());
        let mut recorded = BTreeMap::new();
        let mut before = String::new();
        loop {
            let path = format!("/api/v1/runs?limit=1000{before}");
            let page =
                within(PATIENCE, "the runs", || self.nodes.all[node].get(&path).filter(|page| page.status == 200));
            for run in page.body["items"].as_array().expect("a list") {
                let (id, number) = (run["workflow"].as_str().expect("a name"), &run["number"]);
                let key = run["key"].as_str().or(run["time"].as_str()).expect("a key");
                recorded.insert(format!("{id}@{key}#{number}"), run["state"].as_str().expect("a state").to_owned());
            }
            match &page.body["next"] {
                Value::String(next) => before = format!("&cursor={next}"),
                _ => return recorded,
            }
        }
    }

    /// Stops new runs, waits for the others, and compares what is recorded with the ledger: the numbers of commands that did not end, of runs
    /// of a slot beside the one that succeeded, and of runs that are recorded otherwise than they ended.
    fn judge(mut self) {
        within(PATIENCE, "the pause", || {
            let leader = self.nodes.leader()?;
            let paused = self.nodes.run(&["pause", "tick", "--server", &self.nodes.all[leader].address()]);
            (paused.code == 0).then_some(())
        });
        self.counts("all ended", |(started, ended)| started == ended);
        let live = |recorded: &BTreeMap<String, String>| {
            recorded.values().any(|state| ["dispatched", "running"].contains(&state.as_str()))
        };
        let recorded = within(PATIENCE, "no live run", || Some(self.recorded()).filter(|recorded| !live(recorded)));
        let (starts, overlaps) = self.ledger.overlaps();
        let began: BTreeMap<String, usize> = self.ledger.lines().iter().filter(|(what, ..)| what == "end").fold(
            BTreeMap::new(),
            |mut slots, (_, run, _)| {
                let slot = run.rsplit_once('#').map_or(run.as_str(), |(slot, _)| slot);
                *slots.entry(slot.to_owned()).or_default() += 1;
                slots
            },
        );
        let repeated: Vec<_> = began.iter().filter(|(_, ends)| **ends > 1).collect();
        let ended: Vec<String> =
            self.ledger.lines().into_iter().filter(|(what, ..)| what == "end").map(|(_, run, _)| run).collect();
        let wrong: Vec<_> =
            ended.iter().filter(|run| recorded.get(*run).is_none_or(|state| state != "succeeded")).collect();
        println!("{starts} commands: 0 killed, {} slots repeated, {} recorded wrongly", repeated.len(), wrong.len());
        assert!(overlaps.is_empty(), "runs of one slot at a time: {overlaps:?}");
        assert!(repeated.is_empty(), "they succeeded, and were run again: {repeated:?}");
        assert!(wrong.is_empty(), "they ended, and are recorded otherwise: {wrong:?} of {recorded:?}");
        self.nodes.all.iter_mut().for_each(|node| node.stop());
    }
}

/// A command that goes on until there is a file.
fn until(go: &Path) -> String {
    format!("while [ ! -e {} ]; do sleep 0.1; done", go.display())
}

#[test]
fn commands_outlive_leaders_that_stand_still_are_killed_and_end() {
    let nodes = Nodes::of_file(3);
    let go = nodes.folder.path().join("go");
    let mut fleet = Fleet::of(nodes, &until(&go));
    fleet.counts("all places are taken", |(started, _)| started == AT_A_TIME);
    for what in [Disturbance::Pauses, Disturbance::IsKilled, Disturbance::Ends] {
        fleet.disturb(what);
        assert_eq!(fleet.ledger.counts("tick"), (AT_A_TIME, 0));
    }
    std::fs::write(&go, "").expect("a file");
    fleet.counts("commands end", |(_, ended)| ended > AT_A_TIME);
    fleet.judge();
}

mod real {
    use std::net::ToSocketAddrs;

    use super::{Disturbance, Fleet};
    use crate::support::Folder;
    use crate::support::nodes::Nodes;
    use crate::support::stores::{Random, Store, number};

    /// Disturbances over each store, unless KELOS_ROUNDS says otherwise.
    const ROUNDS: u64 = 10;

    fn play(store: Option<Store>, tenths: u64) {
        let Some(store) = store else { return };
        let (rounds, seed) = ((number("KELOS_ROUNDS", ROUNDS) * tenths).div_ceil(10), number("KELOS_SEED", 1));
        println!("{}: {rounds} rounds with KELOS_SEED={seed}", store.name);
        let server = store.at.to_socket_addrs().expect("an address").next().expect("an address").to_string();
        let mut random = Random(seed);
        let mut fleet = Fleet::of(
            Nodes::through(Folder::with(&[]), &store, &[server.clone(), server.clone(), server]),
            "sleep 0.$((RANDOM % 10))",
        );
        for _ in 0..rounds {
            fleet.disturb(
                [Disturbance::Pauses, Disturbance::Pauses, Disturbance::IsKilled, Disturbance::Ends]
                    [random.below_size(4)],
            );
            std::thread::sleep(random.millis(300, 1500));
        }
        fleet.judge();
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn commands_are_safe_over_postgres() {
        play(Store::postgres(), 4);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn commands_are_safe_over_redis() {
        play(Store::redis(), 3);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn commands_are_safe_over_zookeeper() {
        play(Store::zookeeper(), 2);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn commands_are_safe_over_s3() {
        play(Store::s3(), 1);
    }
}
