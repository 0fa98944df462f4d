//! The state that Stolos keeps in ZooKeeper: a node for each job, with its parts below, and the entries of the queue of each app.

use kelos_tls::Trust;
use kelos_zookeeper::{Access, Code, Login, Session, ZooKeeperError};

use super::{ImportError, StolosState};

/// The usual port.
const PORT: u16 = 2181;
/// The nodes of an app.
const JOBS: &str = "all_subtasks";
const ENTRIES: &str = "entries";
/// Nodes that are no apps.
const NO_APPS: [&str; 4] = [JOBS, ENTRIES, "taken", "zookeeper"];
/// How deep apps are looked for: their names may have slashes.
const DEEPEST: usize = 4;

/// The ZooKeeper of a Stolos.
pub struct ZooKeeperState {
    access: Access,
    /// The node of all apps: empty, or a path.
    root: String,
    name: String,
}

impl ZooKeeperState {
    /// Reads `USER@HOST:PORT,HOST:PORT/PATH`.
    pub(super) fn new(
        address: &str,
        password: Option<&str>,
        trust: Option<&Trust>,
    ) -> Result<ZooKeeperState, ImportError> {
        let refuse = |why: &str| ImportError::Address(why.to_owned());
        let (hosts, root) = address.split_once('/').unwrap_or((address, ""));
        let (user, hosts) = match hosts.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, hosts),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(refuse("a password in it would be seen by everyone"));
        }
        let login = match (user, password) {
            (Some(user), Some(password)) => Some(Login { user: user.to_owned(), password: password.to_owned() }),
            (Some(_), None) => return Err(refuse("it has a user, and --password is missing")),
            (None, Some(_)) => return Err(refuse("there is a password, and it has no user: zookeeper://USER@HOST")),
            (None, None) => None,
        };
        let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>().map_err(|why| refuse(&why))?;
        let named: Vec<String> = hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let root = root.trim_matches('/');
        let root = if root.is_empty() { String::new() } else { format!("/{root}") };
        let name = format!("zookeeper {}{root}", named.join(","));
        // A server that has lost the others may answer, too: what it has is read.
        let access = Access { hosts, trust: trust.cloned(), login, is_reading: true };
        Ok(ZooKeeperState { access, root, name })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn read(&self) -> Result<StolosState, String> {
        let read = || {
            let mut session = Session::open(&self.access, 0)?;
            let mut walk = Walk { session: &mut session, root: &self.root, state: StolosState::default() };
            let is_there = walk.folder("", DEEPEST)?;
            Ok((walk.state, is_there))
        };
        match read().map_err(|error| words(&error))? {
            (state, true) => Ok(state),
            (_, false) => Err(format!("there is no node {}", self.root)),
        }
    }
}

/// The cause of an error, with what to do.
fn words(error: &ZooKeeperError) -> String {
    match error {
        ZooKeeperError::Refused { path, code: Code::NotPermitted } => {
            format!("{path} may only be read by others: name a user in the address, and --password")
        }
        _ => error.to_string(),
    }
}

/// A host and its port.
fn host(text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, port.parse().map_err(|_| "a port in it is not a number".to_owned())?)
        }
        _ => (text, PORT),
    };
    if host.is_empty() { Err("a host in it is empty".to_owned()) } else { Ok((host.to_owned(), port)) }
}

/// A walk over the nodes.
struct Walk<'a> {
    session: &'a mut Session,
    root: &'a str,
    state: StolosState,
}

impl Walk<'_> {
    fn path(&self, below: &str) -> String {
        match (self.root, below) {
            ("", "") => "/".to_owned(),
            (root, "") => root.to_owned(),
            (root, below) => format!("{root}/{below}"),
        }
    }

    /// Reads the apps in a node, and those in nodes below. Returns whether the node exists.
    fn folder(&mut self, below: &str, depth: usize) -> Result<bool, ZooKeeperError> {
        let Some(children) = self.session.children(&self.path(below))? else { return Ok(false) };
        if children.iter().any(|child| child == JOBS) && !below.is_empty() {
            self.app(below)?;
        }
        if depth == 0 {
            return Ok(true);
        }
        for child in children.iter().filter(|child| !NO_APPS.contains(&child.as_str())) {
            let name = if below.is_empty() { child.clone() } else { format!("{below}/{child}") };
            match self.folder(&name, depth - 1) {
                // It may be a node of another program.
                Err(error @ ZooKeeperError::Refused { code: Code::NotPermitted, .. }) => {
                    self.state.troubles.push(words(&error));
                }
                outcome => drop(outcome?),
            }
        }
        Ok(true)
    }

    fn app(&mut self, app: &str) -> Result<(), ZooKeeperError> {
        let jobs = self.path(&format!("{app}/{JOBS}"));
        for job in self.session.children(&jobs)?.unwrap_or_default() {
            self.job(app, &job, &format!("{jobs}/{job}"))?;
        }
        let entries = self.path(&format!("{app}/{ENTRIES}"));
        for entry in self.session.children(&entries)?.unwrap_or_default() {
            // `entry-PPP-NNNNNNNNNN`
            let priority = entry.split('-').nth(1).and_then(|priority| priority.parse().ok());
            let Some(job) = self.text(&format!("{entries}/{entry}"))? else { continue };
            match priority {
                Some(priority) => {
                    let _ = self.state.apps.entry(app.to_owned()).or_default().queued.insert(job, priority);
                }
                None => {
                    self.state.troubles.push(format!("the queue of {app} has an entry {entry:?} without a priority"))
                }
            }
        }
        Ok(())
    }

    fn job(&mut self, app: &str, job: &str, path: &str) -> Result<(), ZooKeeperError> {
        // A node without data has no state.
        let state = self.text(path)?.unwrap_or_default();
        let parts = self.session.children(path)?.unwrap_or_default();
        let has = |part: &str| parts.iter().any(|one| one == part);
        let retries = if has("retry_count") { self.text(&format!("{path}/retry_count"))? } else { None };
        let lock = if has("execute_lock") { self.session.children(&format!("{path}/execute_lock"))? } else { None };
        let record = self.state.job(app, job);
        record.state = state;
        record.is_running = lock.is_some_and(|contenders| !contenders.is_empty());
        let Some(retries) = retries.filter(|retries| !retries.is_empty()) else { return Ok(()) };
        match retries.parse() {
            Ok(retries) => record.retries = retries,
            Err(_) => {
                let why = format!("{app}@{job} has the retry count {retries:?}, expected a number");
                self.state.troubles.push(why);
            }
        }
        Ok(())
    }

    fn text(&mut self, path: &str) -> Result<Option<String>, ZooKeeperError> {
        Ok(self.session.node(path)?.map(|node| String::from_utf8_lossy(&node.data).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str, password: Option<&str>) -> Result<ZooKeeperState, String> {
        ZooKeeperState::new(address, password, None).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_name_hosts_and_a_node() {
        let known = read("a,b:99,[::1]:7/x/y/", None).unwrap();
        assert_eq!(known.access.hosts, [("a".to_owned(), 2181), ("b".to_owned(), 99), ("[::1]".to_owned(), 7)]);
        assert_eq!((known.root.as_str(), known.name.as_str()), ("/x/y", "zookeeper a:2181,b:99,[::1]:7/x/y"));
        assert_eq!(read("[::1]", None).unwrap().access.hosts, [("[::1]".to_owned(), 2181)]);
        assert_eq!(read("a", None).unwrap().root, "");
        assert_eq!(read("ann@a", Some("secret")).unwrap().name, "zookeeper a:2181");
    }

    #[test]
    fn bad_addresses_are_told_without_their_password() {
        let told = |address: &str, password| read(address, password).err().unwrap();
        assert!(told("ann:secret@a", None).starts_with("use the address: a password in it would be seen by everyone"));
        assert!(!told("ann:secret@a", None).contains("secret"));
        assert!(told("ann@a", None).contains("--password is missing"));
        assert!(told("a", Some("x")).contains("it has no user"));
        assert!(told("a:b", None).contains("a port in it is not a number"));
        assert!(told("/x", None).contains("a host in it is empty"));
    }
}
