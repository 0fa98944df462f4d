//! Commands at the workers of nodes, and at a worker that reaches them by their addresses, while leaders change, stand still and are cut
//! off: none is killed, none is done again, and what is recorded of each is what its own ledger says.
//!
//! KELOS_STEADY_ROUNDS says how many faults there are over each store, and KELOS_SEED which; both are printed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::link::{FROM_SERVER, Link, TO_SERVER};
use crate::support::nodes::{Ledger, Nodes};
use crate::support::{Folder, Server, kelos, within};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than a lease of the log, which lasts 3 seconds, and shorter than that of a worker.
const PAUSE: Duration = Duration::from_secs(4);
/// Longer than any wait of a worker for an answer, and still shorter than its lease of 60 seconds.
const LONG_PAUSE: Duration = Duration::from_secs(15);
/// The number of commands at a time.
const AT_A_TIME: usize = 6;
/// Both directions of a link.
const BOTH: u8 = TO_SERVER | FROM_SERVER;

/// A disturbance of the leader.
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    /// It stands still for longer than its lease, and goes on.
    Pauses,
    /// It stands still for as long as the shortest lease of a worker.
    PausesLong,
    /// It is killed, and started again.
    IsKilled,
    /// It is asked to end, and started again.
    Ends,
    /// Its address takes connections, and passes nothing on in these directions.
    IsSilent(u8),
    /// Its link to the store passes nothing on in these directions.
    LosesStore(u8),
    /// The store is killed, and started again.
    StoreDies(&'static str),
}

/// Nodes whose workers run commands, and a worker that reaches them over their addresses.
struct Fleet {
    nodes: Nodes,
    /// The link at the address of each node, as other nodes and workers know it.
    doors: Vec<Link>,
    /// The link of each node to the store, if there is one.
    stores: Vec<Link>,
    worker: Server,
    /// The folder of the worker.
    _home: Folder,
    ledger: Ledger,
    rounds: usize,
}

impl Fleet {
    /// Nodes, and a workflow whose commands take so long.
    fn of(nodes: Nodes, stores: Vec<Link>, shell: &str) -> Fleet {
        let mut nodes = nodes;
        let ledger = Ledger::new(nodes.folder.path());
        let nowhere: SocketAddr = "127.0.0.1:9".parse().expect("an address");
        let doors: Vec<Link> = nodes.all.iter().map(|_| Link::to(nowhere)).collect();
        for (node, door) in doors.iter().enumerate() {
            nodes = nodes.with(node, &["--advertise", &format!("http://{}", door.address())]);
        }
        for (node, door) in nodes.all.iter_mut().zip(&doors) {
            node.start();
            open(door, &node.address());
        }
        let leader = nodes.led();
        let home = Folder::with(&[]);
        let servers: Vec<String> = doors.iter().map(|door| format!("http://{}", door.address())).collect();
        let mut worker = kelos(&["worker", "--server", &servers.join(","), "--dir", home.text(), "--at-a-time", "2"]);
        let worker = Server::run(worker.current_dir(home.path()), "asks ");
        let script = format!(
            "celos.defineWorkflow({{ id: 'tick', schedule: celos.minutelySchedule(), trigger: celos.alwaysTrigger(), \
             schedulingStrategy: celos.serialSchedulingStrategy({AT_A_TIME}), maxRetryCount: 3, \
             externalService: celos.commandExternalService({{ shell: {:?} }}) }});\n",
            ledger.around(shell)
        );
        nodes.deploy((leader + 1) % nodes.all.len(), "tick", &script);
        Fleet { nodes, doors, stores, worker, _home: home, ledger, rounds: 0 }
    }

    fn start(&mut self, node: usize) {
        self.nodes.all[node].start();
        open(&self.doors[node], &self.nodes.all[node].address());
    }

    /// Disturbs the leader, and waits until some node leads and all are up.
    fn disturb(&mut self, what: Disturbance) {
        let leader = within(PATIENCE, "a leader", || self.nodes.leader());
        self.rounds += 1;
        println!("{}: {what:?}: n{leader}", self.rounds);
        match what {
            Disturbance::Pauses | Disturbance::PausesLong => {
                self.nodes.all[leader].signal("STOP");
                std::thread::sleep(if matches!(what, Disturbance::Pauses) { PAUSE } else { LONG_PAUSE });
                self.nodes.all[leader].signal("CONT");
            }
            Disturbance::IsKilled => {
                self.nodes.all[leader].kill();
                self.start(leader);
            }
            Disturbance::Ends => {
                self.nodes.all[leader].stop();
                self.start(leader);
            }
            Disturbance::IsSilent(directions) => cut_for_a_while(&self.doors[leader], directions),
            Disturbance::LosesStore(directions) => cut_for_a_while(&self.stores[leader], directions),
            Disturbance::StoreDies(store) => {
                kelos_test_servers::crash(store);
                std::thread::sleep(PAUSE / 2);
                kelos_test_servers::up(store);
            }
        }
        within(PATIENCE, "a leader", || self.nodes.leader());
    }

    /// Has the leader stand still from now on, and waits until another node leads.
    fn hang(&self) -> usize {
        within(PATIENCE, "another leader", || {
            let leader = self.nodes.leader()?;
            self.nodes.all[leader].signal("STOP");
            let leads = |node: usize| {
                let health = self.nodes.all[node].get("/api/v1/health");
                health.is_some_and(|answer| answer.body["status"] == "leading")
            };
            let until = Instant::now() + PAUSE * 2;
            while Instant::now() < until {
                if (0..self.nodes.all.len()).any(|node| node != leader && leads(node)) {
                    return Some(leader);
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            // It was stopped while it wrote, and holds the lock of the log in the folder.
            self.nodes.all[leader].signal("CONT");
            None
        })
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
        let live = |recorded: &BTreeMap<String, String>| {
            recorded.values().any(|state| ["dispatched", "running"].contains(&state.as_str()))
        };
        let recorded = within(PATIENCE, "no live run", || Some(self.recorded()).filter(|recorded| !live(recorded)));
        let (starts, overlaps) = self.ledger.overlaps();
        let of = |word: &str| -> BTreeSet<String> {
            self.ledger.lines().into_iter().filter(|(what, ..)| what == word).map(|(_, run, _)| run).collect()
        };
        let (started, ended) = (of("start"), of("end"));
        let killed: Vec<_> = started.difference(&ended).collect();
        let mut slots: BTreeMap<&str, usize> = BTreeMap::new();
        for run in &ended {
            *slots.entry(run.rsplit_once('#').map_or(run.as_str(), |(slot, _)| slot)).or_default() += 1;
        }
        let repeated: Vec<_> = slots.iter().filter(|(_, ends)| **ends > 1).collect();
        let wrong: Vec<_> =
            ended.iter().filter(|run| recorded.get(*run).is_none_or(|state| state != "succeeded")).collect();
        println!(
            "{} rounds, {starts} commands: {} killed, {} repeated, {} recorded wrongly",
            self.rounds,
            killed.len(),
            repeated.len(),
            wrong.len()
        );
        assert!(overlaps.is_empty(), "runs of one slot at a time: {overlaps:?}");
        assert!(killed.is_empty(), "they started, and did not end: {killed:?} of {recorded:?}");
        assert!(repeated.is_empty(), "they succeeded, and were run again: {repeated:?}");
        assert!(wrong.is_empty(), "they ended, and are recorded otherwise: {wrong:?} of {recorded:?}");
        assert!(self.worker.stop().success());
        self.nodes.all.iter_mut().for_each(|node| node.stop());
    }
}

/// Leads the address of a node to where it listens now.
fn open(door: &Link, address: &str) {
    door.lead_to(address.trim_start_matches("http://").parse().expect("an address"));
}

fn cut_for_a_while(link: &Link, directions: u8) {
    link.cut(directions);
    std::thread::sleep(PAUSE);
    link.cut(0);
}

/// A command that goes on until there is a file.
fn until(go: &Path) -> String {
    format!("while [ ! -e {} ]; do sleep 0.1; done", go.display())
}

#[test]
#[ignore = "waits for leases: .ci/long steady"]
fn commands_outlive_leaders_that_stand_still_are_silent_are_killed_and_end() {
    let nodes = Nodes::of_file(3);
    let go = nodes.folder.path().join("go");
    let mut fleet = Fleet::of(nodes, Vec::new(), &until(&go));
    fleet.counts("all places are taken", |(started, _)| started == AT_A_TIME);
    for what in [Disturbance::Pauses, Disturbance::IsSilent(BOTH), Disturbance::IsKilled, Disturbance::Ends] {
        fleet.disturb(what);
        assert_eq!(fleet.ledger.counts("tick"), (AT_A_TIME, 0));
    }
    std::fs::write(&go, "").expect("a file");
    fleet.counts("commands end", |(_, ended)| ended > AT_A_TIME);
    fleet.judge();
}

#[test]
#[ignore = "waits for leases: .ci/long steady"]
fn commands_of_a_worker_with_the_shortest_lease_outlive_a_leader_that_stands_still_for_longer() {
    let mut nodes = Nodes::of_file(3);
    for node in 0..3 {
        // The workers of nodes stand still with them, and their commands are fenced.
        nodes = nodes.with(node, &["--lease", "15", "--at-a-time", "0"]);
    }
    let go = nodes.folder.path().join("go");
    let fleet = Fleet::of(nodes, Vec::new(), &until(&go));
    fleet.counts("all places are taken", |(started, _)| started == 2);
    let leader = fleet.hang();
    // The lease, with what the shim and the leader add to it.
    std::thread::sleep(Duration::from_secs(25));
    assert_eq!(fleet.ledger.counts("tick"), (2, 0));
    std::fs::write(&go, "").expect("a file");
    fleet.counts("commands end, though it still stands still", |(_, ended)| ended > 2);
    fleet.nodes.all[leader].signal("CONT");
    fleet.judge();
}

mod stores {
    use std::net::ToSocketAddrs;

    use super::{BOTH, Disturbance, FROM_SERVER, Fleet, Folder, Link, Nodes, TO_SERVER};
    use crate::support::stores::{Random, Store, number};

    /// Disturbances over all stores; KELOS_STEADY_ROUNDS is their number over each.
    const ROUNDS: u64 = 10;
    const NODES: usize = 3;

    const ALL: [Disturbance; 10] = [
        Disturbance::Pauses,
        Disturbance::PausesLong,
        Disturbance::IsKilled,
        Disturbance::Ends,
        Disturbance::IsSilent(BOTH),
        Disturbance::IsSilent(TO_SERVER),
        Disturbance::IsSilent(FROM_SERVER),
        Disturbance::LosesStore(BOTH),
        Disturbance::LosesStore(TO_SERVER),
        Disturbance::LosesStore(FROM_SERVER),
    ];

    fn play(store: Option<Store>, tenths: u64) {
        let Some(store) = store else { return };
        let rounds = number("KELOS_STEADY_ROUNDS", (ROUNDS * tenths).div_ceil(10));
        let seed = number("KELOS_SEED", 1);
        println!("{}: {rounds} rounds with KELOS_SEED={seed}", store.name);
        let server = store.at.to_socket_addrs().expect("an address").next().expect("an address");
        let links: Vec<Link> = (0..NODES).map(|_| Link::to(server)).collect();
        let at: Vec<String> = links.iter().map(|link| link.address().to_string()).collect();
        let nodes = Nodes::through(Folder::with(&[]), &store, &at);
        // Each store begins elsewhere in the numbers of a seed.
        let mut random = Random(seed ^ (tenths << 32));
        let mut fleet = Fleet::of(nodes, links, "sleep $((RANDOM % 5)).$((RANDOM % 10))");
        // One that loses what it has when it is killed loses the log.
        let dies = store.keeps.then_some(Disturbance::StoreDies(store.name));
        let faults: Vec<Disturbance> = ALL.into_iter().chain(dies).collect();
        for _ in 0..rounds {
            fleet.disturb(faults[random.below_size(faults.len())]);
            std::thread::sleep(random.millis(300, 1500));
        }
        print!("{}: ", store.name);
        fleet.judge();
    }

    #[test]
    #[ignore = "waits for leases, over a real server: servers/run with postgres redis s3 zookeeper"]
    fn commands_are_safe_over_postgres() {
        play(Store::postgres(), 4);
    }

    #[test]
    #[ignore = "waits for leases, over a real server: servers/run with postgres redis s3 zookeeper"]
    fn commands_are_safe_over_redis() {
        play(Store::redis(), 3);
    }

    #[test]
    #[ignore = "waits for leases, over a real server: servers/run with postgres redis s3 zookeeper"]
    fn commands_are_safe_over_zookeeper() {
        play(Store::zookeeper(), 2);
    }

    #[test]
    #[ignore = "waits for leases, over a real server: servers/run with postgres redis s3 zookeeper"]
    fn commands_are_safe_over_s3() {
        play(Store::s3(), 1);
    }
}
