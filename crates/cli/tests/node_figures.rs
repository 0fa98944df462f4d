//! Figures of several nodes, printed and not judged: `cargo test --release -p kelos-cli --test command -- --ignored --nocapture figures::`,
//! with `servers/run with redis --` before it, or another store. KELOS_TEST_PROGRAM may name a release build of the program.

mod figures {
    use std::net::{SocketAddr, ToSocketAddrs};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use kelos_model::run::Report;
    use kelos_model::{Outcome, RunId};
    use kelos_wire::{AssignmentDto, OfferRequest, RemoteWorkerDto, RunReportDto};

    use crate::support::link::Link;
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
            nodes = nodes.with(node, &["--at-a-time", "0"]);
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

    #[test]
    #[ignore = "measures: servers/run with redis -- cargo test --test command -- --ignored --nocapture figures::"]
    fn take_over() {
        for store in stores() {
            let (mut nodes, _links) = begun(&store);
            for kind in ["SIGTERM", "kill -9"] {
                let mut times = Vec::new();
                for round in 0..number("KELOS_ROUNDS", 20) {
                    let leader = nodes.led();
                    let other = (leader + 1) % NODES;
                    let began = Instant::now();
                    let mut server = nodes.all[leader].take();
                    server.signal(if kind == "SIGTERM" { "TERM" } else { "KILL" });
                    within(PATIENCE, "written", || {
                        nodes.all[other].put("taken", round).filter(|answer| answer.status == 200)
                    });
                    times.push(began.elapsed());
                    within(PATIENCE, "its end", || server.try_wait());
                    nodes.all[leader].start();
                }
                println!("{}: taken over after {kind}: {}", store.name, quantiles(times));
            }
        }
    }

    /// A worker that runs nothing, and says ten times a second that a run has ended.
    fn works(address: &str, token: &str, name: usize, ends: &AtomicBool) -> Vec<Duration> {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let (mut session, mut done, mut times) = (None, Vec::<RunId>::new(), Vec::new());
        let mut count = 0;
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
                free: 1,
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
            done.extend(given.starts.into_iter().map(|order| order.run));
            std::thread::sleep(Duration::from_millis(100).saturating_sub(began.elapsed()));
        }
        times
    }

    #[test]
    #[ignore = "measures: servers/run with redis -- cargo test --test command -- --ignored --nocapture figures::"]
    fn many_workers() {
        for store in stores() {
            let (nodes, _links) = begun(&store);
            let leader = &nodes.all[nodes.led()];
            let (address, name) = (leader.address(), format!("{}/owner.token", leader.name));
            let token = ["token", "add", "w", "--role", "worker", "--server", &address, "--token-file", &name];
            let token = nodes.run(&token).ok().trim().to_owned();
            let one = |number: u32| {
                format!(
                    "celos.defineWorkflow({{ id: 'w{number}', schedule: celos.minutelySchedule(), trigger: celos.alwaysTrigger(), \
                     schedulingStrategy: celos.serialSchedulingStrategy(60), \
                     externalService: celos.commandExternalService({{ shell: 'true' }}) }});\n"
                )
            };
            nodes.deploy(0, "w", &(0..5).map(one).collect::<String>());
            let ends = AtomicBool::new(false);
            let (before, _) = usage(leader.pid());
            let began = Instant::now();
            let times: Vec<Duration> = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..100)
                    .map(|name| {
                        scope.spawn({
                            let (address, token, ends) = (&address, &token, &ends);
                            move || works(address, token, name, ends)
                        })
                    })
                    .collect();
                std::thread::sleep(Duration::from_secs(number("KELOS_SECONDS", 20)));
                ends.store(true, Ordering::SeqCst);
                workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
            });
            let time = began.elapsed().as_secs_f64();
            let busy = usage(leader.pid()).0 - before;
            println!(
                "{}: 100 workers: {:.0} runs a second, {:.0} % of a processor for the leader; asked → given: {}",
                store.name,
                f64::from(u32::try_from(times.len()).expect("runs")) / time,
                busy / time * 100.0,
                quantiles(times)
            );
        }
    }
}
