//! Another user of the system, as whom a command is started.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{Gid, Uid, User, geteuid, getgrouplist, setgroups, setresgid, setresuid};
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities};

/// Variables of the server that a command of another user keeps.
const KEPT: [&str; 4] = ["PATH", "LANG", "LANGUAGE", "TZ"];

/// The path of programs where the server has none.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A user of the system.
#[derive(Clone, Debug)]
pub(crate) struct SystemUser {
    pub(crate) name: String,
    pub(crate) uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    home: PathBuf,
    shell: PathBuf,
}

impl SystemUser {
    /// Finds a user with all groups, while the system's files can be read.
    pub(crate) fn find(name: &str) -> Result<SystemUser, String> {
        let fail = |why: String| format!("failed to find the user `{name}`: {why}");
        let user = User::from_name(name).map_err(|error| fail(error.to_string()))?;
        let user = user.ok_or_else(|| fail("this machine has no such user".to_owned()))?;
        let c_name = CString::new(name).map_err(|error| fail(error.to_string()))?;
        let groups = getgrouplist(&c_name, user.gid).map_err(|error| fail(error.to_string()))?;
        Ok(SystemUser { name: user.name, uid: user.uid, gid: user.gid, groups, home: user.dir, shell: user.shell })
    }

    /// Whether it is not the one whose rights this process has.
    pub(crate) fn is_another(&self) -> bool {
        self.uid != geteuid()
    }

    /// Has a command start as this user, with an environment that has nothing of the server but where programs are and how people
    /// read: its other variables may be secrets of other projects.
    pub(crate) fn adopt(&self, command: &mut Command) {
        command.env_clear();
        for (name, value) in std::env::vars_os() {
            let is_kept = name.to_str().is_some_and(|name| KEPT.contains(&name) || name.starts_with("LC_"));
            if is_kept {
                command.env(name, value);
            }
        }
        if std::env::var_os("PATH").is_none() {
            command.env("PATH", USUAL_PATH);
        }
        command.env("HOME", &self.home).env("SHELL", &self.shell).env("USER", &self.name).env("LOGNAME", &self.name);
    }

    /// Has a command switch to this user once it is a process of its own, and enter its folder only then.
    #[allow(unsafe_code)]
    pub(crate) fn switch(&self, command: &mut Command, cwd: Option<&Path>) {
        let (user, cwd) = (self.clone(), cwd.map(Path::to_owned));
        let become_user = move || {
            if user.is_another() {
                user.take_over()?;
            }
            match &cwd {
                Some(cwd) => std::env::set_current_dir(cwd),
                None => Ok(()),
            }
        };
        // SAFETY: the shim has one thread, so that no lock is held by another one in the child; besides it only calls the system.
        unsafe { command.pre_exec(become_user) };
    }

    /// Gives up every right of this process, and takes those of the user. Groups first, because later there is no right to; all three
    /// ids of each kind, so that there is no way back.
    fn take_over(&self) -> io::Result<()> {
        setgroups(&self.groups)?;
        setresgid(self.gid, self.gid, self.gid)?;
        clear_ambient_capability_set()?;
        setresuid(self.uid, self.uid, self.uid)?;
        // A server that is not root, but may switch, would otherwise hand its capabilities on.
        let none = CapabilitySet::empty();
        set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
        Ok(())
    }

    /// The reason for which a command of this user could not be started, where it is one of rights.
    pub(crate) fn why_not_started(&self, program: &str, error: &io::Error) -> Option<String> {
        match rustix::io::Errno::from_io_error(error)? {
            rustix::io::Errno::PERM if self.is_another() => Some(format!(
                "the server may not start commands as the user `{}`: it runs as `{}`, and needs root's rights or CAP_SETUID, \
                 CAP_SETGID, CAP_CHOWN and CAP_KILL",
                self.name,
                User::from_uid(geteuid()).ok().flatten().map_or_else(|| geteuid().to_string(), |user| user.name)
            )),
            rustix::io::Errno::ACCESS => Some(format!(
                "the user `{}` may not execute `{program}`, or may not enter its working directory",
                self.name
            )),
            _ => None,
        }
    }
}
