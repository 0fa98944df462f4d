//! The reports of a node to the leader, and what it makes of the answers: who the other nodes are, whether its clock is right, whether
//! another process has its name, and whether the leader can be reached at all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kelos::Node;
use kelos::nodes::{NodeReport, REPORT_EVERY, Reach, Sight, clock_error_among, load};
use kelos_executors::http::{Http, Method, Url};
use kelos_store::log::{LeaseRecord, LogState};
use kelos_wire::{NodeReportRequest, NodesDto};

/// How long the leader, or another node, may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long the leader may refuse the name of this node before it is another process's: one that just ended is known for a while.
const TAKEN: Duration = Duration::from_secs(5);

/// The interval at which a node reports to a leader that refuses it: each time is on the leader's record.
const REFUSED_EVERY: Duration = Duration::from_secs(10);

/// The silence after which another node is not asked.
const SILENT: Duration = Duration::from_secs(600);

/// The last changes of leader in which nodes are looked for that this one has not heard of.
const REIGNS: usize = 20;

/// Tells the leader of this node, again and again, for as long as it serves.
pub(crate) async fn report(node: Node, address: Option<String>, token: Option<Arc<str>>) {
    let Some(log) = node.log().cloned() else { return };
    let instance = format!("{}-{}", std::process::id(), Timestamp::now().as_nanosecond());
    let mut reporter = Reporter {
        node,
        log,
        address,
        token,
        instance,
        reach: Reach::default(),
        leads: None,
        gave_up: None,
        refused: None,
        refusal: None,
        rests: None,
        said: LoggedTrouble::default(),
    };
    loop {
        reporter.look().await;
        tokio::time::sleep(REPORT_EVERY).await;
    }
}

struct Reporter {
    node: Node,
    log: LogState,
    address: Option<String>,
    token: Option<Arc<str>>,
    /// A word that no other process has.
    instance: String,
    reach: Reach,
    /// The epoch in which this node leads, and when it was first seen to.
    leads: Option<(u64, Instant)>,
    /// The epoch of a leader that this node has said it gives up.
    gave_up: Option<u64>,
    /// Since when the leader refuses the name of this node.
    refused: Option<Instant>,
    /// The reason for which the leader refuses the reports of this node.
    refusal: Option<String>,
    /// The epoch of a leader that refuses the reports, and until when it gets none.
    rests: Option<(u64, Instant)>,
    /// The trouble that was logged.
    said: LoggedTrouble,
}

/// The trouble that was logged last, if it is not over.
#[derive(Debug, Default)]
struct LoggedTrouble(Option<String>);

impl LoggedTrouble {
    /// Notes the present trouble, or that there is none; whether it is to be logged, because it has changed.
    fn is_news(&mut self, trouble: Option<&str>) -> bool {
        let is_news = self.0.as_deref() != trouble;
        if is_news {
            self.0 = trouble.map(str::to_owned);
        }
        is_news
    }
}

/// The answer of the leader to a report.
enum LeaderAnswer {
    /// It knows these nodes; nothing from an older program.
    Nodes(Option<NodesDto>),
    /// Another process, at an address, has the name of this node.
    NameTaken(Option<String>),
    /// It refuses the report.
    Refused(String),
}

impl Reporter {
    async fn look(&mut self) {
        let status = self.log.status();
        let epoch = status.lease.epoch;
        self.leads = status.leads.then(|| self.leads.filter(|(of, _)| *of == epoch).unwrap_or((epoch, Instant::now())));
        if let Some((_, since)) = self.leads {
            self.refusal = None;
            self.forget_twin();
            self.reach.answered();
            self.log.note_unreached(None);
            let behind = self.others_behind(since);
            self.log.note_reached(!behind.is_empty());
            self.log.note_clock(clock_error_among(true, &behind));
        } else if status.lease.epoch > 0 && !status.lease.is_free && status.lease.holder.node != self.log.node() {
            self.report_to(&status.lease).await;
        } else {
            self.forget_twin();
            self.reach.answered();
            self.log.note_unreached(None);
        }
        self.say();
    }

    /// By how much the leader's clock, this node's, is ahead of those of the others, as they have reported since a moment.
    fn others_behind(&self, since: Instant) -> Vec<i64> {
        self.node.roster().clocks(since).into_iter().map(i64::wrapping_neg).collect()
    }

    /// No leader says any more that another process has the name of this node.
    fn forget_twin(&mut self) {
        if self.refused.take().is_some() {
            self.log.note_twin(None);
        }
    }

    async fn report_to(&mut self, lease: &LeaseRecord) {
        let asked = Instant::now();
        if self.rests.is_some_and(|(of, until)| of == lease.epoch && asked < until) {
            return;
        }
        match self.tell(lease).await {
            Ok(answered) => {
                self.reach.answered();
                self.log.note_unreached(None);
                self.take(answered, lease.epoch);
            }
            Err(why) => {
                let leader = &lease.holder;
                let place = leader.address.as_deref().unwrap_or("no address");
                let mut why = format!("reach the leader {} at {place}: {why}", leader.node);
                let mut gives_up = None;
                if self.reach.missed(lease.epoch, asked) {
                    self.forget_twin();
                    let (others, names) = self.ask_others(lease).await;
                    // A leader that was reached once has told of all nodes.
                    let knows_all = !self.node.roster().list().is_empty();
                    let is_given_up = self.reach.gives_up(Instant::now(), &others, knows_all);
                    gives_up = is_given_up.then(|| format!("{} could not {why}", self.log.node()));
                    if !names.is_empty() {
                        why = format!("{why}; {}", names.join(", "));
                    }
                }
                self.log.note_unreached(Some(why));
                if let Some(reason) = gives_up {
                    if self.gave_up.replace(lease.epoch) != Some(lease.epoch) {
                        tracing::warn!("{reason}; no other node reaches it, so this one takes the lead");
                    }
                    self.log.depose(lease, reason);
                }
            }
        }
    }

    /// Takes the answer of the leader of an epoch.
    fn take(&mut self, answered: LeaderAnswer, epoch: u64) {
        match answered {
            LeaderAnswer::NameTaken(by) => {
                let since = *self.refused.get_or_insert_with(Instant::now);
                if since.elapsed() >= TAKEN {
                    self.log.note_twin(Some(by.as_deref()));
                }
                return;
            }
            LeaderAnswer::Refused(why) => {
                self.rests = Some((epoch, Instant::now() + REFUSED_EVERY));
                self.refusal = Some(format!(
                    "report to the leader: {why}; nodes that require credentials have the same session.key: copy that of the leader's state"
                ));
            }
            LeaderAnswer::Nodes(nodes) => {
                self.refusal = None;
                if let Some(nodes) = nodes {
                    self.learn(nodes);
                }
            }
        }
        self.forget_twin();
    }

    /// Keeps what the leader says of the others, and compares clocks.
    fn learn(&self, found: NodesDto) {
        let own = found.nodes.iter().find(|node| node.name == self.log.node()).and_then(|node| node.clock_ahead_millis);
        let recent = found.nodes.iter().filter(|node| node.name != self.log.node() && node.heard_millis < 10_000);
        let ahead = recent.filter_map(|node| Some(own? - node.clock_ahead_millis?)).collect::<Vec<_>>();
        self.log.note_clock(clock_error_among(false, &ahead));
        for node in found.nodes.into_iter().filter(|node| node.name != self.log.node()) {
            let report = NodeReport {
                address: node.address,
                version: node.version,
                reads: node.reads,
                followed: node.followed,
                load: node.load,
                trouble: node.trouble,
                unreached: node.unreached,
                clock_ahead: node.clock_ahead_millis,
                instance: None,
            };
            self.node.roster().learn(&node.name, report, Duration::from_millis(node.heard_millis));
        }
    }

    /// Asks the other nodes whether they reach the leader. In words, too. Those that only the log names, because they have led, count if
    /// they answer: they may be gone.
    async fn ask_others(&self, lease: &LeaseRecord) -> (Vec<Sight>, Vec<String>) {
        let (leader, own) = (lease.holder.node.as_str(), self.log.node());
        let known = self.node.roster().list().into_iter().filter(|(_, _, silence)| *silence < SILENT);
        let known = known.map(|(name, report, _)| (name, report.address));
        let mut others: Vec<(String, Option<String>, bool)> = known.map(|(name, at)| (name, at, true)).collect();
        let log = self.log.clone();
        let reigns = tokio::task::spawn_blocking(move || log.reigns(REIGNS)).await;
        for reign in reigns.unwrap_or_else(|_| Ok(Vec::new())).unwrap_or_default() {
            if !others.iter().any(|(name, ..)| *name == reign.node) {
                others.push((reign.node, reign.address, false));
            }
        }
        let mut asked = tokio::task::JoinSet::new();
        for (name, address, is_known) in others {
            let Some(address) = address.filter(|_| name != leader && name != own) else { continue };
            let (http, token, leader) = (self.node.http().clone(), self.token.clone(), leader.to_owned());
            asked.spawn(async move {
                let sight = sight(&http, token.as_deref(), &address, &name, &leader).await;
                (is_known || sight != Sight::Silent).then_some((sight, name))
            });
        }
        let answers: Vec<(Sight, String)> = asked.join_all().await.into_iter().flatten().collect();
        let words = |(sight, name): &(Sight, String)| match sight {
            Sight::Reaches => format!("{name} reaches it"),
            Sight::Misses => format!("{name} does not reach it, either"),
            Sight::Silent => format!("{name} does not answer"),
        };
        let names = answers.iter().map(words).collect();
        (answers.into_iter().map(|(sight, _)| sight).collect(), names)
    }

    async fn tell(&self, lease: &LeaseRecord) -> Result<LeaderAnswer, String> {
        let leader = lease.holder.address.as_deref().ok_or("it has told no address")?;
        let status = self.log.status();
        let report = NodeReportRequest {
            address: self.address.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            reads: self.log.form(),
            followed: status.followed,
            load: load(),
            trouble: status.trouble,
            now: Some(Timestamp::now().into()),
            instance: Some(self.instance.clone()),
        };
        let http = self.node.http();
        let request = http.request(Method::POST, url(leader, self.log.node())?).map_err(|error| error.to_string())?;
        let request = with_token(request.json(&report), self.token.as_deref()).timeout(PATIENCE);
        let answer = http.send(request).await.map_err(|error| error.to_string())?;
        match answer.status.as_u16() {
            200 => {
                let nodes: NodesDto = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
                match nodes.nodes.iter().find(|node| node.leads) {
                    Some(node) if node.name == lease.holder.node => Ok(LeaderAnswer::Nodes(Some(nodes))),
                    _ => Err("another node answers there".to_owned()),
                }
            }
            204 => Ok(LeaderAnswer::Nodes(None)),
            409 => {
                let fault: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                let detail = fault["detail"].as_str().unwrap_or_default();
                let place = detail.split("another process at ").nth(1).and_then(|rest| rest.split(' ').next());
                Ok(LeaderAnswer::NameTaken(place.map(str::to_owned)))
            }
            400 | 401 | 403 | 429 => Ok(LeaderAnswer::Refused(answer.summary())),
            _ => Err(answer.summary()),
        }
    }

    /// Logs a trouble once, and that it is over.
    fn say(&mut self) {
        let status = self.log.status();
        let trouble = status.trouble.or(status.unreached).or_else(|| self.refusal.clone());
        if self.said.is_news(trouble.as_deref()) {
            match &trouble {
                Some(trouble) => tracing::warn!("this node failed to {trouble}"),
                None => tracing::info!("this node follows the log, and reaches the leader"),
            }
        }
    }
}

fn url(address: &str, node: &str) -> Result<Url, String> {
    let mut url: Url = address.parse().map_err(|_| format!("{address} is no URL"))?;
    let mut path = url.path_segments_mut().map_err(|()| format!("{address} has no path"))?;
    path.pop_if_empty().extend(["api", "v1", "nodes"]);
    if !node.is_empty() {
        path.push(node);
    }
    drop(path);
    Ok(url)
}

/// Whether a node reaches the leader, as it says itself.
async fn sight(http: &Http, token: Option<&str>, address: &str, name: &str, leader: &str) -> Sight {
    let ask = async || -> Option<NodesDto> {
        let request = http.request(Method::GET, url(address, "").ok()?).ok()?;
        let answer = http.send(with_token(request, token).timeout(PATIENCE)).await.ok()?;
        answer.status.is_success().then(|| serde_json::from_slice(&answer.body).ok()).flatten()
    };
    let Some(found) = ask().await else { return Sight::Silent };
    let own = found.nodes.iter().find(|node| node.name == name);
    let knows = found.nodes.iter().any(|node| node.leads && node.name == leader);
    match own {
        Some(own) if own.unreached.is_some() || !knows => Sight::Misses,
        Some(_) => Sight::Reaches,
        None => Sight::Silent,
    }
}

fn with_token(
    request: kelos_executors::http::RequestBuilder,
    token: Option<&str>,
) -> kelos_executors::http::RequestBuilder {
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_logged_once_and_so_is_its_end() {
        let mut said = LoggedTrouble::default();
        let looks = [None, Some("reach n0"), Some("reach n0"), Some("read the log"), None, None, Some("reach n0")];
        let logged = looks.map(|trouble| said.is_news(trouble));
        assert_eq!(logged, [false, true, false, true, true, false, true]);
    }
}
