//! Nodes over a log in a real store, while nodes are killed, ended and stopped, the store dies, and links to it are cut. What was
//! acknowledged is everywhere in the end, and no command was run twice at a time.
//!
//! KELOS_ROUNDS says how many faults there are altogether, and KELOS_SEED which; both are printed.

mod real {
    use std::collections::BTreeMap;
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::time::{Duration, Instant};

    use crate::support::link::{FROM_SERVER, Link, TO_SERVER};
    use crate::support::nodes::{Ledger, Nodes};
    use crate::support::stores::{Random, Store, number};
    use crate::support::writes::{Writes, nodes_have};
    use crate::support::{Folder, within};

    /// How long all nodes may take to be of one mind after the last fault, on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(120);
    /// Faults of all stores, unless KELOS_ROUNDS says otherwise.
    const ROUNDS: u64 = 50;
    const NODES: usize = 3;
    /// A lease of the log lasts 3 seconds.
    const BEYOND_THE_LEASE: Duration = Duration::from_millis(3500);

    /// A fault of a node, of the store, or between them.
    #[derive(Debug, Clone, Copy)]
    enum Mishap {
        Kill,
        End,
        Stop,
        StoreDies,
        Cut(u8),
    }

    const MISHAPS: [Mishap; 9] = [
        Mishap::Kill,
        Mishap::Kill,
        Mishap::End,
        Mishap::End,
        Mishap::Stop,
        Mishap::Cut(TO_SERVER),
        Mishap::Cut(FROM_SERVER),
        Mishap::Cut(TO_SERVER | FROM_SERVER),
        Mishap::StoreDies,
    ];

    /// Nodes with a link each to the store, and the writes to them.
    struct Chaos {
        nodes: Nodes,
        links: Vec<Link>,
        ledger: Ledger,
        random: Random,
        writes: Writes,
    }

    impl Chaos {
        fn begin(store: &Store, seed: u64) -> Chaos {
            let server: SocketAddr = store.at.to_socket_addrs().expect("an address").next().expect("an address");
            let links: Vec<Link> = (0..NODES).map(|_| Link::to(server)).collect();
            let at: Vec<String> = links.iter().map(|link| link.address().to_string()).collect();
            let mut nodes = Nodes::through(Folder::with(&[]), store, &at);
            let ledger = Ledger::new(nodes.folder.path());
            nodes.all.iter_mut().for_each(|node| node.start());
            let leader = nodes.led();
            let script = format!(
                "celos.defineWorkflow({{ id: 'tick', schedule: celos.minutelySchedule(), trigger: celos.alwaysTrigger(), \
                 schedulingStrategy: celos.serialSchedulingStrategy(6), \
                 externalService: celos.commandExternalService({{ shell: {:?} }}) }});\n",
                ledger.around("sleep 0.4")
            );
            nodes.deploy((leader + 1) % NODES, "tick", &script);
            let mut writes = Writes::default();
            writes.begin(&nodes);
            Chaos { nodes, links, ledger, random: Random(seed), writes }
        }

        /// Does one thing, and undoes it after a while.
        fn round(&mut self, store: &Store, number: u64, taken: &mut BTreeMap<&'static str, Vec<Duration>>) {
            std::thread::sleep(self.random.millis(300, 1200));
            let mishap = loop {
                let picked = self.random.below_size(MISHAPS.len());
                if store.keeps || !matches!(MISHAPS[picked], Mishap::StoreDies) {
                    break MISHAPS[picked];
                }
            };
            // Two times in three it is the leader, whose loss matters most.
            let any = self.random.below_size(NODES);
            let leader = self.nodes.leader();
            let node = if self.random.below(3) > 0 { leader.unwrap_or(any) } else { any };
            println!("{} {number}: {mishap:?} of n{node}, and {leader:?} leads", store.name);
            let began = Instant::now();
            let mut ending = None;
            let led = (leader == Some(node)).then_some((node + 1) % NODES);
            match mishap {
                Mishap::Kill => self.nodes.all[node].kill(),
                Mishap::End => {
                    let server = self.nodes.all[node].take();
                    server.signal("TERM");
                    ending = Some(server);
                }
                Mishap::Stop => {
                    self.nodes.all[node].signal("STOP");
                    std::thread::sleep(BEYOND_THE_LEASE + self.random.millis(0, 1000));
                    self.nodes.all[node].signal("CONT");
                }
                Mishap::StoreDies => {
                    kelos_test_servers::crash(store.name);
                    std::thread::sleep(self.random.millis(0, 3000));
                    kelos_test_servers::up(store.name);
                }
                Mishap::Cut(directions) => {
                    self.links[node].cut(directions);
                    std::thread::sleep(BEYOND_THE_LEASE + self.random.millis(0, 1000));
                    self.links[node].cut(0);
                }
            }
            if matches!(mishap, Mishap::Kill | Mishap::End) {
                self.writes.note(&self.nodes);
                // From the mishap to the first write that another node answers.
                if let Some(other) = led.filter(|&other| self.nodes.all[other].is_up()) {
                    within(PATIENCE, "written", || {
                        self.nodes.all[other].put("taken", number).filter(|answer| answer.status == 200)
                    });
                    let kind = if matches!(mishap, Mishap::Kill) { "kill -9" } else { "SIGTERM" };
                    taken.entry(kind).or_default().push(began.elapsed());
                }
                if let Some(mut server) = ending {
                    let status = within(PATIENCE, "its end", || server.try_wait());
                    assert!(status.success(), "n{node} ended with {status}");
                }
                std::thread::sleep(self.random.millis(0, 1500));
                self.nodes.all[node].start();
                self.writes.note(&self.nodes);
            }
        }

        /// Compares all nodes with what was acknowledged, and the ledger with what is allowed.
        fn judge(mut self, store: &Store) {
            let acknowledged = self.writes.end();
            assert!(!acknowledged.is_empty(), "nothing was acknowledged");
            nodes_have(&self.nodes, &acknowledged);
            // Commands are run again, too.
            let (_, ended) = self.ledger.counts("tick");
            within(PATIENCE, "a run that ends", || (self.ledger.counts("tick").1 > ended).then_some(()));
            let (starts, overlaps) = self.ledger.overlaps();
            assert!(overlaps.is_empty(), "runs of one slot at a time: {overlaps:?}");
            println!(
                "{}: {} writes acknowledged and none lost; {starts} starts, none twice",
                store.name,
                acknowledged.len()
            );
            assert!(starts > 0, "nothing was run");
            self.nodes.all.iter_mut().for_each(|node| node.stop());
        }
    }

    /// Plays a part of all rounds over a store.
    fn play(store: Option<Store>, tenths: u64) {
        let Some(store) = store else { return };
        let (rounds, seed) = (number("KELOS_ROUNDS", ROUNDS) * tenths / 10, number("KELOS_SEED", 1));
        println!("{}: {rounds} rounds with KELOS_SEED={seed}", store.name);
        let mut taken = BTreeMap::new();
        let mut chaos = Chaos::begin(&store, seed);
        (0..rounds).for_each(|number| chaos.round(&store, number, &mut taken));
        chaos.judge(&store);
        for (kind, mut times) in taken {
            times.sort_unstable();
            let at = |percent: usize| times[(times.len() - 1) * percent / 100];
            println!(
                "{}: taken over after {kind}: p50 {:.2?}, p99 {:.2?} ({} times)",
                store.name,
                at(50),
                at(99),
                times.len()
            );
        }
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn nothing_is_lost_over_postgres() {
        play(Store::postgres(), 4);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with redis -- cargo test -- --ignored real::"]
    fn nothing_is_lost_over_redis() {
        play(Store::redis(), 3);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with zookeeper -- cargo test -- --ignored real::"]
    fn nothing_is_lost_over_zookeeper() {
        play(Store::zookeeper(), 2);
    }

    #[test]
    #[ignore = "needs a real server: servers/run with s3 -- cargo test -- --ignored real::"]
    fn nothing_is_lost_over_s3() {
        play(Store::s3(), 1);
    }
}
