//! Figures of several nodes, printed and not judged: `cargo test --release -p kelos-cli --test command -- --ignored --nocapture figures::`,
//! with `servers/run with redis --` before it, or another store. KELOS_TEST_PROGRAM may name a release build of the program.

mod figures {
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use kelos_model::run::Report;
    use kelos_model::{Outcome, RunId};
    use kelos_wire::{AssignmentDto, OfferRequest, RemoteWorkerDto, RunReportDto};

    use crate::support::link::{FROM_SERVER, Link, TO_SERVER};
    use crate::support::nodes::Nodes;
    use crate::support::stores::{Store, number};
    use crate::support::{Folder, Said, Server, kelos, within};

    const NODES: usize = 3;
    const PATIENCE: Duration = Duration::from_secs(60);
    /// Ticks of processor time in a second, as Linux counts them in `/proc`.
    const TICKS: f64 = 100.0;

    fn stores() -> Vec<Store> {
        [Store::postgres(), Store::redis(), Store::zookeeper(), Store::s3()].into_iter().flatten().collect()
    }

    fn begun(store: &Store) -> (Nodes, Vec<Link>) {
        let server: SocketAddr = store.at.to_socket_addrs().expect("an address").next().expect("an address");
        let links: Vec<Link> = (0..NODES).map(|_| Link::to(server)).collect();
        let at: Vec<String> = links.iter().map(|link| link.address().to_string()).collect();
        let mut nodes = Nodes::through(Folder::with(&[]), store, &at);
        for node in 0..NODES {
            nodes = nodes.with(node, &["--at-a-time", "0", "--max-running", "20000"]);
        }
        nodes.all.iter_mut().for_each(|node| node.start());
        nodes.led();
        (nodes, links)
    }

    /// The seconds of processor time of a process so far, and its memory in MB.
    fn usage(pid: u32) -> (f64, u64) {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a process");
        let fields: Vec<&str> = stat.rsplit_once(')').expect("fields").1.split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>().expect("ticks") + fields[12].parse::<f64>().expect("ticks");
        let pages: u64 = fields[21].parse().expect("pages");
        (ticks / TICKS, pages * 4096 / 1_000_000)
    }

    fn quantiles(mut times: Vec<Duration>) -> String {
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() - 1) * percent / 100];
        format!("p50 {:.2?}, p99 {:.2?}, worst {:.2?} ({} times)", at(50), at(99), at(100), times.len())
    }

    /// Ten workflows with a past of an hour for each slot.
    const PAST: &str = "
        for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']) celos.defineWorkflow({ id: name,
            schedule: celos.hourlySchedule(), trigger: celos.alwaysTrigger(), schedulingStrategy: celos.serialSchedulingStrategy(),
            startTime: new Date().toISOString(), externalService: celos.commandExternalService({ shell: 'true' }) });";
    const HOURS: i64 = 100_000;

    #[test]
    #[ignore = "measures: servers/run with redis -- cargo test --test command -- --ignored --nocapture figures::"]
    fn new_node() {
        for store in stores() {
            let folder = Folder::with(&[("workflows/past.js", PAST)]);
            Server::start(folder.path(), &["up", "--port", "0"], "Stop with Ctrl-C").stop();
            crate::past::fill(&folder, HOURS);
            let began = Instant::now();
            let variables = store.variables(&store.at);
            let moved = kelos(&["move", "--to", "env:KELOS_STORE"])
                .current_dir(folder.path())
                .envs(variables)
                .output()
                .expect("kelos");
            let said = Said::of(moved);
            let took = began.elapsed();
            println!("{}: 1 M finished slots moved within {took:.1?}: {}", store.name, said.ok().trim());
            let at = vec![store.at.clone(); 2];
            let mut nodes = Nodes::through(Folder::with(&[]), &store, &at);
            for number in 0..2 {
                let began = Instant::now();
                let node = &mut nodes.all[number];
                node.start();
                let answers = began.elapsed();
                let has_all = within(PATIENCE, "its data", || {
                    let counted = node.get("/api/v1/workflows/a")?.body;
                    (counted["counts"]["succeeded"].as_u64()? > 90_000).then(|| began.elapsed())
                });
                let file = std::fs::metadata(node.state().join("kelos.db")).map_or(0, |file| file.len() / 1_000_000);
                println!(
                    "{}: a new node answers after {answers:.2?}, with all slots after {has_all:.2?} ({file} MB)",
                    store.name
                );
            }
        }
    }

    #[test]
    #[ignore = "measures: servers/run with redis -- cargo test --test command -- --ignored --nocapture figures::"]
    fn idle() {
        for store in stores() {
            let (nodes, links) = begun(&store);
            let leader = nodes.led();
            std::thread::sleep(Duration::from_secs(5));
            let look = || -> Vec<(f64, u64, u64)> {
                let of = |(node, link): (&crate::support::nodes::Node, &Link)| {
                    let (seconds, memory) = usage(node.pid());
                    (seconds, memory, link.requests())
                };
                nodes.all.iter().zip(&links).map(of).collect()
            };
            let time = number("KELOS_SECONDS", 30);
            let before = look();
            std::thread::sleep(Duration::from_secs(time));
            for (node, (before, after)) in before.iter().zip(look()).enumerate() {
                let role = if node == leader { "leads" } else { "stands by" };
                let (busy, requests) = (after.0 - before.0, after.2 - before.2);
                let time = f64::from(u32::try_from(time).expect("seconds"));
                let requests = f64::from(u32::try_from(requests).expect("requests"));
                println!(
                    "{}: a node that {role}: {:.2} % of a processor, {} MB, {:.1} requests a second to the store",
                    store.name,
                    busy / time * 100.0,
                    after.1,
                    requests / time
                );
            }
        }
    }

    /// A fault of a leader.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Fault {
        Terminated,
        Killed,
        Paused,
        FullDisk,
        OutOfReach,
    }

    /// Sets how large the files may become that a process writes.
    fn limit_files(pid: u32, bytes: &str) {
        let limit = format!("--fsize={bytes}");
        let set = std::process::Command::new("prlimit").args(["--pid", &pid.to_string(), &limit]).status();
        assert!(set.expect("prlimit").success(), "{bytes}");
    }

    /// Nodes that reach each other over links.
    struct Fronts(Vec<Link>);

    impl Fronts {
        fn start(&self, nodes: &mut Nodes, node: usize) {
            nodes.all[node].start();
            let address = nodes.all[node].address();
            self.0[node].lead_to(address.trim_start_matches("http://").parse().expect("an address"));
        }
    }

    #[test]
    #[ignore = "measures: servers/run with redis -- cargo test --test command -- --ignored --nocapture figures::"]
    fn take_over() {
        for store in stores() {
            let at = vec![store.at.clone(); NODES];
            let mut nodes = Nodes::through(Folder::with(&[]), &store, &at);
            let nowhere: SocketAddr = "127.0.0.1:1".parse().expect("an address");
            let fronts = Fronts((0..NODES).map(|_| Link::to(nowhere)).collect());
            for node in 0..NODES {
                let place = format!("http://{}", fronts.0[node].address());
                nodes = nodes.with(node, &["--at-a-time", "0", "--advertise", &place]);
            }
            (0..NODES).for_each(|node| fronts.start(&mut nodes, node));
            for fault in [Fault::Terminated, Fault::Killed, Fault::Paused, Fault::FullDisk, Fault::OutOfReach] {
                let mut times = Vec::new();
                for round in 0..number("KELOS_ROUNDS", 20) {
                    let leader = within(PATIENCE, "a leader", || nodes.leader());
                    let other = (leader + 1) % NODES;
                    let began = Instant::now();
                    let mut ended = None;
                    match fault {
                        Fault::Terminated | Fault::Killed => {
                            let server = nodes.all[leader].take();
                            server.signal(if fault == Fault::Killed { "KILL" } else { "TERM" });
                            ended = Some(server);
                        }
                        Fault::Paused => nodes.all[leader].signal("STOP"),
                        Fault::FullDisk => limit_files(nodes.all[leader].pid(), "1"),
                        Fault::OutOfReach => fronts.0[leader].cut(TO_SERVER | FROM_SERVER),
                    }
                    within(PATIENCE, "written", || {
                        nodes.all[other].put("taken", round).filter(|answer| answer.status == 200)
                    });
                    times.push(began.elapsed());
                    match fault {
                        Fault::Terminated | Fault::Killed => {
                            let mut server = ended.expect("the process");
                            within(PATIENCE, "its end", || server.try_wait());
                            fronts.start(&mut nodes, leader);
                        }
                        Fault::Paused => nodes.all[leader].signal("CONT"),
                        Fault::FullDisk => limit_files(nodes.all[leader].pid(), "unlimited"),
                        Fault::OutOfReach => fronts.0[leader].cut(0),
                    }
                    std::thread::sleep(Duration::from_secs(2));
                }
                println!("{}: taken over, {fault:?}: {}", store.name, quantiles(times));
            }
        }
    }

    /// A worker that runs nothing, and says ten times a second that its runs have ended.
    fn works(address: &str, token: &str, (name, places): (usize, u32), ends: &AtomicBool) -> (usize, Vec<Duration>) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let (mut session, mut done, mut times) = (None, Vec::<RunId>::new(), Vec::new());
        let (mut count, mut runs) = (0, 0);
        while !ends.load(Ordering::SeqCst) {
            count += 1;
            let report = |run: RunId| RunReportDto { run, what: Report::Ended { outcome: Outcome::Succeeded } };
            let offer = OfferRequest {
                session: session.clone(),
                count,
                remote: Some(RemoteWorkerDto {
                    host: "bench".to_owned(),
                    version: "0".to_owned(),
                    node: None,
                    outputs: None,
                }),
                free: places,
                reports: done.drain(..).map(report).collect(),
                wait_millis: 1000,
                ..OfferRequest::default()
            };
            let began = Instant::now();
            let request = agent.post(format!("{address}/api/v1/workers/bench{name}/offer"));
            let request = request.header("authorization", format!("Bearer {token}")).content_type("application/json");
            let text = serde_json::to_string(&offer).expect("JSON");
            let mut answer = request.send(text).expect("an answer");
            let text = answer.body_mut().read_to_string().expect("text");
            let given: AssignmentDto = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            session = Some(given.session);
            if !given.starts.is_empty() {
                times.push(began.elapsed());
            }
            runs += given.starts.len();
            done.extend(given.starts.into_iter().map(|order| order.run));
            std::thread::sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
        }
        (runs, times)
    }

    #[test]
    #[ignore = "measures: servers/run with redis -- cargo test --test command -- --ignored --nocapture figures::"]
    fn many_workers() {
        for store in stores() {
            let (workers, places) = (number("KELOS_WORKERS", 50), number("KELOS_PLACES", 40));
            let (workers, places) =
                (usize::try_from(workers).expect("workers"), u32::try_from(places).expect("places"));
            let (nodes, _links) = begun(&store);
            let leads = nodes.led();
            let leader = &nodes.all[leads];
            let (address, name) = (leader.address(), format!("{}/owner.token", leader.name));
            let token = ["token", "add", "w", "--role", "worker", "--server", &address, "--token-file", &name];
            let token = nodes.run(&token).ok().trim().to_owned();
            let one = |number: u32| {
                format!(
                    "celos.defineWorkflow({{ id: 'w{number}', schedule: celos.minutelySchedule(), trigger: celos.alwaysTrigger(), \
                     schedulingStrategy: celos.serialSchedulingStrategy(1000), \
                     externalService: celos.commandExternalService({{ shell: 'true' }}) }});\n"
                )
            };
            nodes.deploy(0, "w", &(0..10).map(one).collect::<String>());
            let ends = AtomicBool::new(false);
            let busy = || -> Vec<f64> {
                let pids = nodes.all.iter().map(|node| node.pid()).chain([std::process::id()]);
                pids.map(|pid| usage(pid).0).collect()
            };
            let (before, began) = (busy(), Instant::now());
            let done: Vec<(usize, Vec<Duration>)> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..workers)
                    .map(|name| {
                        let (address, token, ends) = (&address, &token, &ends);
                        scope.spawn(move || works(address, token, (name, places), ends))
                    })
                    .collect();
                std::thread::sleep(Duration::from_secs(number("KELOS_SECONDS", 20)));
                ends.store(true, Ordering::SeqCst);
                all.into_iter().map(|worker| worker.join().expect("a worker")).collect()
            });
            let time = began.elapsed().as_secs_f64();
            // The standbys follow.
            std::thread::sleep(Duration::from_secs(2));
            let runs: usize = done.iter().map(|(runs, _)| runs).sum();
            let runs = f64::from(u32::try_from(runs).expect("runs"));
            println!("{}: {workers} workers with {places} places: {:.0} runs a second", store.name, runs / time);
            for (number, (before, after)) in before.into_iter().zip(busy()).enumerate() {
                let who = match number {
                    NODES => "the load".to_owned(),
                    number if number == leads => "the leader".to_owned(),
                    number => format!("standby n{number}"),
                };
                println!("  {who}: {:.3} ms of processor time a run", (after - before) * 1000.0 / runs);
            }
            println!("  asked → given: {}", quantiles(done.into_iter().flat_map(|(_, times)| times).collect()));
        }
    }
}
