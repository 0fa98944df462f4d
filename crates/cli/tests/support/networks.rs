//! Machines in network namespaces of their own, joined by a switch: their links can be cut, in one direction, too. The addresses are
//! those of the namespaces alone, which have no way out. The namespaces have no names, so they go with the processes in them, also if
//! the test is killed.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::within;

/// An address of no interface: what is sent there is lost.
const NOWHERE: &str = "02:00:00:00:00:99";
/// The longest time for which a namespace is held.
const HELD: &str = "3600";

/// A network namespace.
pub(crate) struct Space {
    holder: Child,
    pub(crate) address: String,
}

/// Namespaces behind one switch, in which the test itself is, too.
pub(crate) struct Network {
    /// The namespace that this process is in.
    outside: File,
    /// Held for as long as the machines.
    _switch: Space,
    pub(crate) machines: Vec<Space>,
}

impl Network {
    /// A network of so many machines, which this thread enters; none where the machine does not allow it, which is said.
    pub(crate) fn new(count: usize) -> Option<Network> {
        let switch = Space::new("10.77.0.254".to_owned())?;
        switch.ip("link set lo up")?;
        switch.ip("link add br0 type bridge")?;
        switch.ip("addr add 10.77.0.254/24 dev br0")?;
        switch.ip("link set br0 up")?;
        let mut machines = Vec::new();
        for number in 1..=count {
            let machine = Space::new(format!("10.77.0.{number}"))?;
            let peer = machine.holder.id();
            switch.ip(&format!("link add v{number} type veth peer name eth0 netns {peer}"))?;
            switch.ip(&format!("link set v{number} master br0 up"))?;
            machine.ip("link set lo up")?;
            machine.ip(&format!("addr add {}/24 dev eth0", machine.address))?;
            machine.ip("link set eth0 up")?;
            machines.push(machine);
        }
        let outside = File::open("/proc/thread-self/ns/net").ok()?;
        enter(&switch.file());
        Some(Network { outside, _switch: switch, machines })
    }

    /// Does something in the namespace that the test was in before, such as starting threads.
    pub(crate) fn outside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let acted = scope.spawn(|| {
                enter(&self.outside);
                act()
            });
            acted.join().expect("outside")
        })
    }

    /// Loses what one machine sends to another.
    pub(crate) fn cut(&self, from: usize, to: usize) {
        let to = &self.machines[to].address;
        self.machines[from].ip(&format!("neigh replace {to} lladdr {NOWHERE} dev eth0 nud permanent")).expect("a cut");
    }

    /// Delivers it again.
    pub(crate) fn heal(&self, from: usize, to: usize) {
        let to = &self.machines[to].address;
        self.machines[from].ip(&format!("neigh del {to} dev eth0")).expect("a whole link");
    }
}

impl Space {
    fn new(address: String) -> Option<Space> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", HELD]).stdin(Stdio::null());
        let holder = command.spawn().ok()?;
        let mut space = Space { holder, address };
        let own = std::fs::read_link("/proc/thread-self/ns/net").ok()?;
        within(super::PATIENCE, "a namespace", || {
            let is_made = std::fs::read_link(space.path()).is_ok_and(|there| there != own);
            let is_over = space.holder.try_wait().expect("its status").is_some();
            (is_made || is_over).then_some(is_made)
        })
        .then_some(space)
    }

    /// The file of the namespace.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.holder.id()))
    }

    /// Runs `ip` in it.
    fn ip(&self, words: &str) -> Option<()> {
        let within = format!("--net={}", self.path().display());
        let mut command = Command::new("nsenter");
        command.arg(within).arg("ip").args(words.split(' '));
        let done = command.output().ok()?;
        if !done.status.success() {
            println!("ip {words}: {}", String::from_utf8_lossy(&done.stderr));
        }
        done.status.success().then_some(())
    }

    fn file(&self) -> File {
        File::open(self.path()).expect("a namespace")
    }

    /// A listener in it, for a thread that is elsewhere.
    pub(crate) fn listener(&self) -> TcpListener {
        std::thread::scope(|scope| {
            let bound = scope.spawn(|| {
                enter(&self.file());
                let address: SocketAddr = format!("{}:0", self.address).parse().expect("an address");
                TcpListener::bind(address).expect("a port")
            });
            bound.join().expect("a listener")
        })
    }
}

/// Moves this thread into a namespace.
fn enter(space: &File) {
    move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).expect("a move");
}

impl Drop for Space {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
