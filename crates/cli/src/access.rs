//! The access to a server, from its options, its settings and the files beside its database.

use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kelos_front::{Access, AccessSettings};
use kelos_tls::Trust;
#[cfg(feature = "openid")]
use kelos_trust::SecretPlace;
use kelos_trust::{OpenIdSettings, Provider, Rules, SessionKey};

use crate::failure::Failure;

/// The file with the token of the server's owner, in the folder of its state.
pub(crate) const OWNER: &str = "owner.token";
/// The file with the key that signs sessions, in the same folder.
pub(crate) const SESSIONS: &str = "session.key";

/// The options of a server about who may come in.
#[derive(Clone, clap::Args, Default)]
pub(crate) struct AccessOptions {
    /// Require a credential for everything: people sign in, programs show tokens. `kelos user add` and `kelos token add` make them.
    /// Rules in "access" of --config require it, too
    #[arg(long)]
    pub(crate) auth: bool,
}

/// The access to a server whose state is in a folder; workers on the same machine show a token of their own.
pub(crate) fn of(
    options: &AccessOptions,
    rules: Option<Rules>,
    trust: &Trust,
    state: &Path,
    worker: Option<Arc<str>>,
    is_of_several: bool,
) -> Result<Access, Failure> {
    let key = kept(state, SESSIONS, || {
        let key = SessionKey::draw().map_err(|error| error.to_string())?;
        Ok(URL_SAFE_NO_PAD.encode(key.bytes()))
    })?;
    let key = URL_SAFE_NO_PAD.decode(key.trim()).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let key = key.ok_or_else(|| {
        let file = state.join(SESSIONS);
        Failure::bad(format!("read the key of sessions in {}: expected 32 bytes in base64", file.display()))
            .hint("remove the file: everybody then signs in again")
    })?;
    let key = SessionKey::from_bytes(key);
    // Nodes that share the key have the same owner, and know each other.
    let owner = kept(state, OWNER, || Ok(key.token("owner").reveal().to_owned()))?;
    let nodes = is_of_several.then(|| key.token("node").reveal().into());
    let required = options.auth || rules.is_some();
    let rules = rules.unwrap_or_default();
    let provider = rules.openid.as_ref().map(|settings| provider(settings, trust)).transpose()?;
    Ok(Access::new(AccessSettings {
        required,
        rules,
        provider,
        key: Some(key),
        owner: Some(owner.trim().into()),
        worker,
        nodes,
        open_to_workers: is_of_several,
    }))
}

/// The provider at which people sign in.
#[cfg(feature = "openid")]
fn provider(settings: &OpenIdSettings, trust: &Trust) -> Result<Arc<dyn Provider>, Failure> {
    let read = |SecretPlace(source): &SecretPlace| {
        let fail = |why| Failure::usage(format!("read the secret {source} of \"openid\": {why}"));
        kelos_engine::secrets::read_secret(source).map_err(fail)
    };
    let secret = settings.client_secret.as_ref().map(read).transpose()?;
    Ok(Arc::new(kelos_openid::OpenId::new(settings.clone(), secret, trust).map_err(Failure::usage)?))
}

/// Refuses a provider, whose client is not in this program.
#[cfg(not(feature = "openid"))]
fn provider(settings: &OpenIdSettings, _: &Trust) -> Result<Arc<dyn Provider>, Failure> {
    let why = format!(
        "have people sign in at {}, as --config says: this program was built without OpenID Connect",
        settings.issuer
    );
    Err(Failure::usage(why)
        .hint("build it with the feature `openid`: cargo build --release -p kelos-cli --features openid"))
}

/// The token of the owner of the server whose state is in a folder, for whoever may read it there.
pub(crate) fn owner(state: &Path) -> Option<Arc<str>> {
    Some(std::fs::read_to_string(state.join(OWNER)).ok()?.trim().into())
}

/// The content of a file that only its owner may read, which is made at the first time. Of several processes that make it at once,
/// one succeeds, and the others find what it made: the file has its name only when it is whole.
fn kept(state: &Path, name: &str, make: impl FnOnce() -> Result<String, String>) -> Result<String, Failure> {
    let file = state.join(name);
    let fail = |error: &dyn std::fmt::Display| Failure::bad(format!("keep a secret in {}: {error}", file.display()));
    if !file.try_exists().map_err(|error| fail(&error))? {
        let made = make().map_err(|error| fail(&error))?;
        match put(state, &file, &made) {
            Ok(()) => return Ok(made),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fail(&error)),
        }
    }
    let meta = std::fs::metadata(&file).map_err(|error| fail(&error))?;
    if meta.mode() & 0o077 != 0 {
        let why = format!("its permissions are {:o}, so that others may read it", meta.mode() & 0o777);
        return Err(fail(&why).hint(format!("chmod 600 {}, or remove it, so that another is made", file.display())));
    }
    std::fs::read_to_string(&file).map_err(|error| fail(&error))
}

/// Makes a file with a content, readable for its owner alone; fails if there is one.
fn put(folder: &Path, file: &Path, content: &str) -> std::io::Result<()> {
    let mut beside =
        tempfile::Builder::new().prefix(".secret").permissions(Permissions::from_mode(0o600)).tempfile_in(folder)?;
    beside.write_all(content.as_bytes())?;
    beside.as_file().sync_all()?;
    beside.persist_noclobber(file)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_made_once_and_kept_from_others() {
        let state = tempfile::tempdir().expect("a folder");
        let made = || kept(state.path(), "a", || Ok("secret".to_owned()));
        assert_eq!(made().expect("a secret"), "secret");
        assert_eq!(kept(state.path(), "a", || Ok("another".to_owned())).expect("the same"), "secret");
        let file = state.path().join("a");
        assert_eq!(std::fs::metadata(&file).expect("a file").mode() & 0o777, 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("permissions");
        let told = format!("{:?}", made().expect_err("a refusal"));
        assert!(told.contains("others may read it"), "{told}");
    }

    #[test]
    fn all_who_make_a_secret_at_once_have_the_same() {
        let state = tempfile::tempdir().expect("a folder");
        let made = |n: usize| kept(state.path(), "a", || Ok(format!("the secret of {n}, to its end")));
        let all: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16).map(|n| scope.spawn(move || made(n).expect("a secret"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert!(all.iter().all(|one| *one == all[0] && one.ends_with("to its end")), "{all:?}");
        assert_eq!(std::fs::read_dir(state.path()).expect("a folder").count(), 1);
    }
}
