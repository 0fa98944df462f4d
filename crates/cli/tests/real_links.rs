//! Three nodes and a worker on machines of their own, in network namespaces, over a real store: their links are cut and healed in every
//! pattern. What was acknowledged is everywhere in the end, and no command was run twice at a time.
//!
//! KELOS_CUTS says how often each link is cut, once by default. Where the machine allows no namespaces the test says that it is skipped.

mod real {
    use std::collections::BTreeSet;
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::time::Duration;

    use crate::support::link::Link;
    use crate::support::networks::Network;
    use crate::support::nodes::{Ledger, Nodes};
    use crate::support::stores::{Store, number};
    use crate::support::writes::{Writes, nodes_have};
    use crate::support::{Folder, Server, kelos_within, within};

    const PATIENCE: Duration = Duration::from_secs(120);
    const NODES: usize = 3;
    /// Machines after those of the nodes.
    const WORKER: usize = 3;
    const STORE: usize = 4;
    /// A lease of the log lasts 3 seconds.
    const BEYOND_THE_LEASE: Duration = Duration::from_millis(3500);

    /// Links that are cut at once; the leader and the two others are known when it begins.
    #[derive(Debug, Clone, Copy)]
    enum Pattern {
        LeaderToStore,
        StoreToLeader,
        LeaderFromStore,
        StandbyFromStore,
        LeaderToWorker,
        WorkerToLeader,
        LeaderFromWorkers,
        LeaderFromNode,
        NodeToLeader,
        NodesFromEachOther,
        WorkerFromAll,
        LeaderFromAll,
    }

    impl Pattern {
        const ALL: [Pattern; 12] = [
            Pattern::LeaderToStore,
            Pattern::StoreToLeader,
            Pattern::LeaderFromStore,
            Pattern::StandbyFromStore,
            Pattern::LeaderToWorker,
            Pattern::WorkerToLeader,
            Pattern::LeaderFromWorkers,
            Pattern::LeaderFromNode,
            Pattern::NodeToLeader,
            Pattern::NodesFromEachOther,
            Pattern::WorkerFromAll,
            Pattern::LeaderFromAll,
        ];

        /// The ways that are cut, each from one machine to another.
        fn ways(self, leader: usize) -> BTreeSet<(usize, usize)> {
            let (next, last) = ((leader + 1) % NODES, (leader + 2) % NODES);
            let both = |pairs: &[(usize, usize)]| {
                pairs.iter().flat_map(|&(one, other)| [(one, other), (other, one)]).collect()
            };
            match self {
                Pattern::LeaderToStore => [(leader, STORE)].into(),
                Pattern::StoreToLeader => [(STORE, leader)].into(),
                Pattern::LeaderFromStore => both(&[(leader, STORE)]),
                Pattern::StandbyFromStore => both(&[(next, STORE)]),
                Pattern::LeaderToWorker => [(leader, WORKER)].into(),
                Pattern::WorkerToLeader => [(WORKER, leader)].into(),
                // The other nodes have workers, too.
                Pattern::LeaderFromWorkers => both(&[(leader, WORKER), (leader, next), (leader, last)]),
                Pattern::LeaderFromNode => both(&[(leader, next)]),
                Pattern::NodeToLeader => [(next, leader)].into(),
                Pattern::NodesFromEachOther => both(&[(leader, next), (leader, last), (next, last)]),
                Pattern::WorkerFromAll => both(&[(WORKER, leader), (WORKER, next), (WORKER, last)]),
                Pattern::LeaderFromAll => both(&[(leader, next), (leader, last), (leader, WORKER), (leader, STORE)]),
            }
        }
    }

    fn play(store: Option<Store>) {
        let Some(store) = store else { return };
        let server: SocketAddr = store.at.to_socket_addrs().expect("an address").next().expect("an address");
        // The store itself listens on another network: its machine passes on what it receives.
        let Some(network) = Network::new(STORE + 1) else {
            println!("SKIPPED: no network namespaces can be made here");
            return;
        };
        let listener = network.machines[STORE].listener();
        let link = network.outside(|| Link::by(listener, server));
        let at = vec![link.address().to_string(); NODES];
        let mut nodes = Nodes::through(Folder::with(&[]), &store, &at);
        for node in 0..NODES {
            nodes = nodes.on(node, &network.machines[node]);
        }
        let ledger = Ledger::new(nodes.folder.path());
        nodes.all.iter_mut().for_each(|node| node.start());
        let leader = nodes.led();
        nodes.deploy((leader + 1) % NODES, "tick", &tick(&ledger));
        let home = Folder::with(&[]);
        let args = ["worker", "--server", &nodes.all[0].address(), "--dir", home.text(), "--at-a-time", "2"]
            .map(str::to_owned);
        let mut worker = kelos_within(&network.machines[WORKER].path());
        let server = nodes.all[0].address();
        let token = nodes
            .run(&[
                "token",
                "add",
                "workers",
                "--role",
                "worker",
                "--server",
                &server,
                "--token-file",
                "n0/owner.token",
            ])
            .ok();
        let worker = worker.args(args).current_dir(home.path()).env("KELOS_TOKEN", token.trim());
        let worker = Server::run(worker, "asks ");
        let mut writes = Writes::default();
        writes.begin(&nodes);
        for round in 0..number("KELOS_CUTS", 1) {
            for pattern in Pattern::ALL {
                let leader = nodes.led();
                let (before, _) = ledger.counts("tick");
                println!("{} {round}: {pattern:?}, n{leader} leads", store.name);
                let ways = pattern.ways(leader);
                ways.iter().for_each(|&(from, to)| network.cut(from, to));
                std::thread::sleep(BEYOND_THE_LEASE);
                ways.iter().for_each(|&(from, to)| network.heal(from, to));
                within(PATIENCE, "a command that starts", || (ledger.counts("tick").0 > before).then_some(()));
            }
        }
        let acknowledged = writes.end();
        nodes_have(&nodes, &acknowledged);
        let (_, ended) = ledger.counts("tick");
        within(PATIENCE, "a run that ends", || (ledger.counts("tick").1 > ended).then_some(()));
        drop(worker);
        let (starts, overlaps) = ledger.overlaps();
        assert!(overlaps.is_empty(), "runs of one slot at a time: {overlaps:?}");
        println!(
            "{}: {} writes acknowledged and none lost; {starts} starts, none twice",
            store.name,
            acknowledged.len()
        );
        assert!(starts > 0 && !acknowledged.is_empty(), "nothing was done");
        nodes.all.iter_mut().for_each(|node| node.stop());
    }

    /// A workflow whose commands are at work all the time.
    fn tick(ledger: &Ledger) -> String {
        format!(
            "celos.defineWorkflow({{ id: 'tick', schedule: celos.minutelySchedule(), trigger: celos.alwaysTrigger(), \
             schedulingStrategy: celos.serialSchedulingStrategy(8), \
             externalService: celos.commandExternalService({{ shell: {:?} }}) }});\n",
            ledger.around("sleep 0.4")
        )
    }

    #[test]
    #[ignore = "needs a real server: servers/run with postgres -- cargo test -- --ignored real::"]
    fn links_are_cut_and_healed_over_postgres() {
        play(Store::postgres());
    }
}
