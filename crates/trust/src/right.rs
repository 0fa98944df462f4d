//! Rights, and the roles that bundle them.

use std::fmt;

/// A right: what a request needs, and what a role gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// To see definitions, slots, runs, their output and the log.
    View,
    /// To rerun, kill, pause, mark, skip, backfill, start, signal, publish facts and set registers.
    Operate,
    /// To deploy and remove projects, and to make and change event schedules.
    Author,
    /// To see who did what, who was refused, and who has which rights.
    Audit,
    /// To change users, tokens and the server itself.
    Admin,
    /// To do runs as a worker.
    Work,
}

impl Right {
    /// All rights.
    pub const ALL: [Right; 6] = [Right::View, Right::Operate, Right::Author, Right::Audit, Right::Admin, Right::Work];

    /// The least role that gives it.
    #[must_use]
    pub const fn role(self) -> Role {
        match self {
            Right::View => Role::View,
            Right::Operate => Role::Operate,
            Right::Author => Role::Author,
            Right::Audit => Role::Audit,
            Right::Admin => Role::Admin,
            Right::Work => Role::Worker,
        }
    }

    /// Its name: a verb.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Right::View => "view",
            Right::Operate => "operate",
            Right::Author => "author",
            Right::Audit => "audit",
            Right::Admin => "administer",
            Right::Work => "work",
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

/// A set of rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rights(u8);

impl Rights {
    const fn of(rights: &[Right]) -> Rights {
        let mut bits = 0;
        let mut at = 0;
        while at < rights.len() {
            bits |= 1 << rights[at] as u8;
            at += 1;
        }
        Rights(bits)
    }

    /// Whether a right is in the set.
    #[must_use]
    pub fn has(self, right: Right) -> bool {
        self.0 & (1 << right as u8) != 0
    }
}

/// A role: the rights that people and machines are given together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Sees everything of a project, and changes nothing.
    View,
    /// Keeps a project running.
    Operate,
    /// Writes a project, and keeps it running.
    Author,
    /// May do everything that people do; for all projects this includes users and tokens.
    Admin,
    /// Sees everything, also who did what and who was refused, and changes nothing.
    Audit,
    /// Does runs as a worker, and sees nothing.
    Worker,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 6] = [Role::View, Role::Operate, Role::Author, Role::Admin, Role::Audit, Role::Worker];

    /// Its name, as people type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Operate => "operate",
            Role::Author => "author",
            Role::Admin => "admin",
            Role::Audit => "audit",
            Role::Worker => "worker",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Its rights.
    #[must_use]
    pub const fn rights(self) -> Rights {
        match self {
            Role::View => Rights::of(&[Right::View]),
            Role::Operate => Rights::of(&[Right::View, Right::Operate]),
            Role::Author => Rights::of(&[Right::View, Right::Operate, Right::Author]),
            Role::Admin => Rights::of(&[Right::View, Right::Operate, Right::Author, Right::Audit, Right::Admin]),
            Role::Audit => Rights::of(&[Right::View, Right::Audit]),
            Role::Worker => Rights::of(&[Right::Work]),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_roles_and_rights() {
        let row = |role: Role| {
            let has = |right: Right| if role.rights().has(right) { right.name() } else { "-" };
            format!("{role}: {}", Right::ALL.map(has).join(" "))
        };
        let table = Role::ALL.map(row).join("\n");
        assert_eq!(
            table,
            "view: view - - - - -\n\
             operate: view operate - - - -\n\
             author: view operate author - - -\n\
             admin: view operate author audit administer -\n\
             audit: view - - audit - -\n\
             worker: - - - - - work"
        );
    }
}
