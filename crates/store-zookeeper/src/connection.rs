//! The operations of a log on its nodes.

use std::io::Read;
use std::time::{Duration, Instant};

use kelos_store::log::adapter::{Action, check_trim, next_part};
use kelos_store::log::{Holder, LeaseRecord, Log, LogEnds, LogEntry, LogError};
use kelos_zookeeper::{Code, Node, Write};
use serde::de::DeserializeOwned;

use crate::ZooKeeperLog;
use crate::layout::{EpochRecord, Head, Renewals, Snapshot, entry_content, read, read_entry, text_of};
use crate::session::Link;

/// The bytes of a node: a request of ZooKeeper has at most 1 MB.
const PIECE: usize = 700_000;
/// The bytes of entries that are read at a time; more only if one entry alone has more.
const READ: usize = 4 << 20;
/// The entries that are asked for at a time, with the first position of the log in the same message.
const TOGETHER: usize = 15;
/// The nodes that are deleted at a time.
const DELETED: usize = 100;
/// The largest snapshot in bytes: ZooKeeper has all its nodes in memory and sends each to all its servers.
const LARGEST_SNAPSHOT: usize = 8 << 20;
/// The longest that a watch is waited for before the node is read again.
const HELD: Duration = Duration::from_secs(5);
/// Tries of what another client keeps changing.
const TRIES: usize = 10;

/// The content of a node and its version.
type NodeContent<T> = (T, i32);

pub(crate) struct Connection {
    link: Link,
    /// The epoch under which entries were appended, with the version of its node.
    epoch: Option<(u64, i32)>,
    /// The last position, with the version of its node.
    last: Option<(u64, i32)>,
    /// The renewals that this connection wrote last, with the version of their node.
    renewed: Option<NodeContent<Renewals>>,
}

impl Connection {
    pub(crate) fn open(place: ZooKeeperLog) -> Result<Connection, LogError> {
        let mut connection = Connection { link: Link::new(place), epoch: None, last: None, renewed: None };
        // An address that is wrong is told when it is opened.
        connection.lease_as(Action::read("open the log"))?;
        Ok(connection)
    }

    /// A node that each log has, and its content.
    fn content<T: DeserializeOwned>(&mut self, action: Action<'_>, path: &str) -> Result<NodeContent<T>, LogError> {
        let node = self.link.ask(action, |session| session.node(path))?;
        let node = node.ok_or_else(|| missing(path))?;
        Ok((read(path, &node.data)?, node.version))
    }

    /// The taking and its renewals, with the versions of their nodes.
    fn taking(&mut self, action: Action<'_>) -> Result<(NodeContent<EpochRecord>, NodeContent<Renewals>), LogError> {
        let paths = [self.link.layout.epoch.clone(), self.link.layout.renewals.clone()];
        let nodes = self.link.ask(action, |session| session.latest_nodes(&paths))?;
        let [Some(taking), Some(renewals)] = nodes.as_slice() else { return Err(missing(&paths[0])) };
        Ok(((read(&paths[0], &taking.data)?, taking.version), (read(&paths[1], &renewals.data)?, renewals.version)))
    }

    fn lease_as(&mut self, action: Action<'_>) -> Result<LeaseRecord, LogError> {
        for _ in 0..TRIES {
            let ((taking, _), (renewals, _)) = self.taking(action)?;
            if let Some(lease) = taking.lease(&renewals) {
                return Ok(lease);
            }
        }
        Err(action.failed("it is taken again and again"))
    }

    /// Changes the renewals of a taking while it is in force and not given back.
    fn change(
        &mut self,
        action: Action<'_>,
        held: &LeaseRecord,
        to: impl Fn(&Renewals) -> Renewals,
    ) -> Result<Option<Renewals>, LogError> {
        for _ in 0..TRIES {
            let path = self.link.layout.renewals.clone();
            let is_of_taking = |known: &NodeContent<Renewals>| {
                (known.0.epoch, known.0.nonce, known.0.is_free) == (held.epoch, held.nonce, false)
            };
            let (found, version) = match self.renewed.take().filter(is_of_taking) {
                Some(known) => known,
                None => self.content(action, &path)?,
            };
            if (found.epoch, found.nonce) != (held.epoch, held.nonce) || found.is_free {
                return Ok(None);
            }
            let changed = to(&found);
            let data = text_of(&changed);
            match self.link.write(action, &[Write::Set { path: &path, data: &data, version }])? {
                Ok(()) => {
                    // Each write raises the version by one.
                    self.renewed = Some((changed.clone(), version.wrapping_add(1)));
                    return Ok(Some(changed));
                }
                Err((_, Code::OtherVersion)) => {}
                Err((_, code)) => return Err(action.failed(code.to_string())),
            }
        }
        Err(action.failed("others change it again and again"))
    }

    /// The version of the node of an epoch; an error if another one is in force.
    fn epoch_version(&mut self, action: Action<'_>, epoch: u64) -> Result<i32, LogError> {
        match self.epoch {
            Some((known, version)) if known == epoch => Ok(version),
            _ => {
                let path = self.link.layout.epoch.clone();
                let (taking, version): (EpochRecord, i32) = self.content(action, &path)?;
                self.epoch = Some((taking.epoch, version));
                if taking.epoch != epoch {
                    return Err(LogError::Deposed { held: epoch, current: taking.epoch });
                }
                Ok(version)
            }
        }
    }

    /// The version of the node of the last position; an error if the position is not the one after it.
    fn last_version(&mut self, action: Action<'_>, position: u64) -> Result<i32, LogError> {
        if let Some((last, version)) = self.last
            && last + 1 == position
        {
            return Ok(version);
        }
        let path = self.link.layout.last.clone();
        let (last, version) = self.content(action, &path)?;
        self.last = Some((last, version));
        if last + 1 == position { Ok(version) } else { Err(LogError::NotNext { position, last }) }
    }

    /// Writes the pieces of a body that is too large for one node, and gives the content of the node of its entry.
    fn prepare(&mut self, action: Action<'_>, epoch: u64, position: u64, body: &[u8]) -> Result<Vec<u8>, LogError> {
        if body.len() <= PIECE {
            return Ok(entry_content(&Head { epoch, pieces: None }, body));
        }
        let number = random(action)?;
        let mut pieces = 0;
        for data in body.chunks(PIECE) {
            let path = self.link.layout.piece(position, number, pieces);
            match self.link.write(action, &[Write::Create { path: &path, data }]) {
                Ok(Ok(())) => {}
                Ok(Err((_, code))) => return Err(action.failed(code.to_string())),
                // Pieces without an entry are nothing.
                Err(LogError::Unknown { cause, .. }) => return Err(action.failed(cause)),
                Err(error) => return Err(error),
            }
            pieces += 1;
        }
        Ok(entry_content(&Head { epoch, pieces: Some((number, pieces)) }, &[]))
    }

    /// The entry of a node, with the pieces of its body.
    fn entry(&mut self, action: Action<'_>, position: u64, node: &Node) -> Result<LogEntry, LogError> {
        let path = self.link.layout.entry(position);
        let (head, body) = read_entry(&path, &node.data)?;
        let Some((number, pieces)) = head.pieces else {
            return Ok(LogEntry { position, epoch: head.epoch, body: body.to_vec() });
        };
        let paths: Vec<String> = (0..pieces).map(|piece| self.link.layout.piece(position, number, piece)).collect();
        let mut body = Vec::new();
        for (path, piece) in paths.iter().zip(self.link.ask(action, |session| session.nodes(&paths))?) {
            body.extend(piece.ok_or_else(|| missing(path))?.data);
        }
        Ok(LogEntry { position, epoch: head.epoch, body })
    }

    fn first(&mut self, action: Action<'_>) -> Result<u64, LogError> {
        let path = self.link.layout.first.clone();
        Ok(self.content(action, &path)?.0)
    }

    fn latest(&mut self, action: Action<'_>) -> Result<NodeContent<Option<Snapshot>>, LogError> {
        let path = self.link.layout.snapshot.clone();
        self.content(action, &path)
    }

    /// Deletes the children of a node that are not to be kept.
    fn sweep(&mut self, action: Action<'_>, parent: &str, is_kept: impl Fn(&str) -> bool) -> Result<(), LogError> {
        let names = self.link.ask(action, |session| session.children(parent))?.unwrap_or_default();
        let paths: Vec<String> =
            names.iter().filter(|name| !is_kept(name)).map(|name| format!("{parent}/{name}")).collect();
        for paths in paths.chunks(DELETED) {
            let deletions: Vec<Write<'_>> = paths.iter().map(|path| Write::Delete { path }).collect();
            if self.link.write(action, &deletions)?.is_err() {
                // Somebody else deletes, too: then each by itself.
                for deletion in &deletions {
                    let _ = self.link.write(action, std::slice::from_ref(deletion))?;
                }
            }
        }
        Ok(())
    }

    /// Makes a snapshot the latest one unless a newer one was stored meanwhile.
    fn complete(&mut self, action: Action<'_>, snapshot: &Snapshot) -> Result<bool, LogError> {
        for _ in 0..TRIES {
            let (older, version) = self.latest(action)?;
            if older.is_some_and(|older| older.position > snapshot.position) {
                return Ok(false);
            }
            let (path, last) = (self.link.layout.snapshot.clone(), self.link.layout.last.clone());
            let (position, last_version): (u64, i32) = self.content(action, &last)?;
            let first = self.link.layout.first.clone();
            let (_, first_version): (u64, i32) = self.content(action, &first)?;
            let parts: Vec<String> =
                (0..snapshot.parts).map(|part| self.link.layout.part(snapshot.number, part)).collect();
            let (data, to_last, to_first) =
                (text_of(snapshot), text_of(&snapshot.position), text_of(&(snapshot.position + 1)));
            let mut writes: Vec<Write<'_>> = parts.iter().map(|path| Write::Check { path, version: 0 }).collect();
            writes.push(Write::Set { path: &path, data: &data, version });
            if position == 0 {
                writes.push(Write::Set { path: &last, data: &to_last, version: last_version });
                writes.push(Write::Set { path: &first, data: &to_first, version: first_version });
            }
            match self.link.write(action, &writes)? {
                Ok(()) => {
                    self.last = None;
                    return Ok(true);
                }
                Err((index, _)) if index < parts.len() => return Err(action.failed("its parts are gone")),
                Err((_, Code::OtherVersion)) => {}
                Err((_, code)) => return Err(action.failed(code.to_string())),
            }
        }
        Err(action.failed("others change it again and again"))
    }
}

impl Log for Connection {
    fn lease(&mut self) -> Result<LeaseRecord, LogError> {
        self.lease_as(Action::read("read the lease"))
    }

    fn take(&mut self, seen: &LeaseRecord, nonce: u64, holder: &Holder) -> Result<Option<LeaseRecord>, LogError> {
        let action = Action::write("take the lease");
        let ((taking, epoch_version), (renewals, version)) = self.taking(action)?;
        if taking.lease(&renewals).as_ref() != Some(seen) {
            return Ok(None);
        }
        let taken = seen.taken_by(nonce, holder);
        let (epoch, renewals) = (text_of(&EpochRecord::of(&taken)), text_of(&Renewals::of(&taken)));
        let layout = &self.link.layout;
        let (epoch_path, renewals_path) = (layout.epoch.clone(), layout.renewals.clone());
        let writes = [
            Write::Set { path: &epoch_path, data: &epoch, version: epoch_version },
            Write::Set { path: &renewals_path, data: &renewals, version },
        ];
        match self.link.write(action, &writes)? {
            Ok(()) => Ok(Some(taken)),
            Err((_, Code::OtherVersion)) => Ok(None),
            Err((_, code)) => Err(action.failed(code.to_string())),
        }
    }

    fn renew(&mut self, held: &LeaseRecord) -> Result<Option<LeaseRecord>, LogError> {
        let action = Action::write("renew the lease");
        let renewed = |found: &Renewals| Renewals { renewals: found.renewals + 1, ..found.clone() };
        let changed = self.change(action, held, renewed)?;
        Ok(changed.map(|changed| LeaseRecord { renewals: changed.renewals, ..held.clone() }))
    }

    fn release(&mut self, held: &LeaseRecord) -> Result<(), LogError> {
        let action = Action::write("give the lease back");
        self.change(action, held, |found| Renewals { is_free: true, ..found.clone() })?;
        // The standbys watch this node, and look at the lease when it changes; its content stays. They find out without it, only later.
        let path = self.link.layout.last.clone();
        if let Ok((last, version)) = self.content::<u64>(action, &path) {
            let _ = self.link.write(action, &[Write::Set { path: &path, data: &text_of(&last), version }]);
        }
        Ok(())
    }

    fn append(&mut self, epoch: u64, position: u64, body: &[u8]) -> Result<(), LogError> {
        let doing = format!("append entry {position} of the log");
        let action = Action::write(&doing);
        for _ in 0..TRIES {
            let epoch_version = self.epoch_version(action, epoch)?;
            let last_version = self.last_version(action, position)?;
            let content = self.prepare(action, epoch, position, body)?;
            let layout = &self.link.layout;
            let (epoch_path, last_path, entry) = (layout.epoch.clone(), layout.last.clone(), layout.entry(position));
            let last = text_of(&position);
            let writes = [
                Write::Check { path: &epoch_path, version: epoch_version },
                Write::Set { path: &last_path, data: &last, version: last_version },
                Write::Create { path: &entry, data: &content },
            ];
            match self.link.write(action, &writes)? {
                Ok(()) => {
                    self.last = Some((position, last_version.wrapping_add(1)));
                    return Ok(());
                }
                // The lease and the ends are read again, and say whether the entry is refused.
                Err((_, Code::OtherVersion)) => (self.epoch, self.last) = (None, None),
                Err((_, code)) => return Err(action.failed(format!("{entry}: {code}"))),
            }
        }
        Err(action.failed("others append again and again"))
    }

    fn read(&mut self, after: u64, limit: usize) -> Result<Vec<LogEntry>, LogError> {
        let action = Action::read("read the log");
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let (first_path, mut first) = (self.link.layout.first.clone(), 0);
        'reading: while entries.len() < limit {
            let begin = after + 1 + entries.len() as u64;
            let many = TOGETHER.min(limit - entries.len()) as u64;
            let mut paths: Vec<String> =
                (begin..begin + many).map(|position| self.link.layout.entry(position)).collect();
            paths.push(first_path.clone());
            let mut nodes = self.link.ask(action, |session| session.nodes(&paths))?;
            let found = nodes.pop().flatten().ok_or_else(|| missing(&first_path))?;
            first = read(&first_path, &found.data)?;
            for (position, node) in (begin..).zip(nodes) {
                let Some(node) = node else { break 'reading };
                let entry = self.entry(action, position, &node)?;
                bytes += entry.body.len();
                if bytes > READ && !entries.is_empty() {
                    break 'reading;
                }
                entries.push(entry);
            }
        }
        if after + 1 < first {
            return Err(LogError::RemovedHistory { after, first });
        }
        Ok(entries)
    }

    fn ends(&mut self) -> Result<LogEnds, LogError> {
        let action = Action::read("read the ends of the log");
        let path = self.link.layout.last.clone();
        self.link.ask(action, |session| session.sync(&path))?;
        let (last, version) = self.content(action, &path)?;
        self.last = Some((last, version));
        Ok(LogEnds { first: self.first(action)?, last })
    }

    fn wait(&mut self, after: u64, patience: Duration) -> Result<(), LogError> {
        let action = Action::read("wait for entries of the log");
        let began = Instant::now();
        let path = self.link.layout.last.clone();
        let node = self.link.ask(action, |session| session.watch(&path))?;
        let last: u64 = read(&path, &node.ok_or_else(|| missing(&path))?.data)?;
        let mut is_told = last > after;
        while !is_told && began.elapsed() < patience {
            let left = patience.saturating_sub(began.elapsed()).min(HELD);
            is_told = self.link.ask(action, |session| session.wait(left))?;
        }
        Ok(())
    }

    fn put_snapshot(&mut self, position: u64, source: &mut dyn Read) -> Result<(), LogError> {
        let doing = format!("store the snapshot at entry {position}");
        let action = Action::write(&doing);
        let state = next_part(source, LARGEST_SNAPSHOT + 1)?;
        if state.len() > LARGEST_SNAPSHOT {
            let most = LARGEST_SNAPSHOT >> 20;
            return Err(action.failed(format!(
                "it has more than {most} MB, which is too much for ZooKeeper; keep snapshots on a storage URL with --snapshots URL"
            )));
        }
        let number = random(action)?;
        let mut parts = 0;
        for data in state.chunks(PIECE) {
            let path = self.link.layout.part(number, parts);
            if let Err((_, code)) = self.link.write(action, &[Write::Create { path: &path, data }])? {
                return Err(action.failed(code.to_string()));
            }
            parts += 1;
        }
        if self.complete(action, &Snapshot { position, number, parts })? {
            let own = format!("{number:016x}-");
            let parent = self.link.layout.parts.clone();
            self.sweep(action, &parent, |name| name.starts_with(&own))?;
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<u64>, LogError> {
        let action = Action::read("find the latest snapshot");
        Ok(self.latest(action)?.0.map(|latest| latest.position))
    }

    fn read_snapshot(&mut self, position: u64, target: &mut dyn std::io::Write) -> Result<(), LogError> {
        let doing = format!("read the snapshot at entry {position}");
        let action = Action::read(&doing);
        let gone = || action.failed("there is no such snapshot any more");
        let latest = self.latest(action)?.0.filter(|latest| latest.position == position).ok_or_else(gone)?;
        for part in 0..latest.parts {
            let path = self.link.layout.part(latest.number, part);
            let node = self.link.ask(action, |session| session.node(&path))?.ok_or_else(gone)?;
            target.write_all(&node.data).map_err(|error| action.failed(error.to_string()))?;
        }
        Ok(())
    }

    fn trim(&mut self, before: u64) -> Result<(), LogError> {
        let doing = format!("trim the log before entry {before}");
        let action = Action::write(&doing);
        check_trim(before, self.snapshot()?)?;
        let (path, data) = (self.link.layout.first.clone(), text_of(&before));
        for _ in 0..TRIES {
            let (first, version): (u64, i32) = self.content(action, &path)?;
            if first >= before {
                break;
            }
            match self.link.write(action, &[Write::Set { path: &path, data: &data, version }])? {
                Ok(()) => break,
                Err((_, Code::OtherVersion)) => {}
                Err((_, code)) => return Err(action.failed(code.to_string())),
            }
        }
        let is_kept = |name: &str| {
            let position = name.split('-').next().and_then(|position| position.parse::<u64>().ok());
            position.is_none_or(|position| position >= before)
        };
        let (entries, pieces) = (self.link.layout.entries.clone(), self.link.layout.pieces.clone());
        self.sweep(action, &entries, is_kept)?;
        self.sweep(action, &pieces, is_kept)
    }
}

fn missing(path: &str) -> LogError {
    LogError::Corrupt { place: path.to_owned(), what: "the node is gone".to_owned() }
}

fn random(action: Action<'_>) -> Result<u64, LogError> {
    getrandom::u64().map_err(|error| action.failed(error.to_string()))
}
