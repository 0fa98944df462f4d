//! The platforms that a program is made for.

/// A platform.
#[derive(Debug)]
pub(super) struct Platform {
    /// Its name for the compiler, which is also part of the tarball's name.
    pub(super) triple: &'static str,
    /// The tag of its wheels.
    pub(super) tag: &'static str,
    /// The oldest glibc that it has, as the number after `2.`; none where the program is static.
    pub(super) glibc: Option<u32>,
}

/// All platforms. The first has every connector; the second needs nothing of the system, but can't load the library of Kerberos.
pub(super) const ALL: [Platform; 2] = [
    Platform { triple: "x86_64-unknown-linux-gnu", tag: "manylinux_2_17_x86_64.manylinux2014_x86_64", glibc: Some(17) },
    Platform { triple: "x86_64-unknown-linux-musl", tag: "musllinux_1_1_x86_64", glibc: None },
];

impl Platform {
    /// Its name for cargo-zigbuild, with the version of glibc.
    pub(super) fn zig(&self) -> String {
        self.glibc.map_or_else(|| self.triple.to_owned(), |minor| format!("{}.2.{minor}", self.triple))
    }
}

/// The platform of a name.
pub(super) fn named(triple: &str) -> Result<&'static Platform, String> {
    let names = || ALL.iter().map(|one| one.triple).collect::<Vec<_>>().join(" or ");
    ALL.iter().find(|one| one.triple == triple).ok_or_else(|| format!("expected {}", names()))
}
