//! The token that a client shows: of a file, of the environment, or of a login that was kept; and how people type secrets.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde::{Deserialize, Serialize};
use ureq::http::HeaderValue;

use crate::failure::Failure;

/// The variable with a token.
const TOKEN: &str = "KELOS_TOKEN";

/// The sources of a client's token. Never from the command line itself, which every user of the machine can read.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct TokenOptions {
    /// File with the token to show to the server [default: KELOS_TOKEN, or the token that `kelos login` keeps]
    #[arg(long, env = "KELOS_TOKEN_FILE", value_name = "FILE", hide_env_values = true, value_hint = clap::ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
}

impl TokenOptions {
    /// Those of the environment alone.
    pub(crate) fn of_environment() -> TokenOptions {
        let token_file = std::env::var_os("KELOS_TOKEN_FILE").filter(|file| !file.is_empty()).map(PathBuf::from);
        TokenOptions { token_file }
    }

    /// The token that was named: of the file, or of the environment.
    pub(crate) fn named(&self) -> Result<Option<String>, Failure> {
        if let Some(file) = self.token_file.as_ref().filter(|file| !file.as_os_str().is_empty()) {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::usage(format!("read the token in {}: {error}", file.display())))?;
            return Ok(Some(text.trim().to_owned()));
        }
        Ok(std::env::var(TOKEN).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()))
    }

    /// The token for a server: the one that was named, else that of a login.
    pub(crate) fn text(&self, base: &str) -> Result<Option<String>, Failure> {
        match self.named()? {
            Some(token) => Ok(Some(token)),
            None => Ok(Logins::read()?.of(base).map(|login| login.token.clone())),
        }
    }

    /// The header with the token for a server: the one that was named, else `otherwise`, else that of a login.
    pub(crate) fn header(&self, base: &str, otherwise: Option<&str>) -> Result<Option<HeaderValue>, Failure> {
        let token = match self.named()? {
            Some(token) => Some(token),
            None => match otherwise {
                Some(token) => Some(token.to_owned()),
                None => Logins::read()?.of(base).map(|login| login.token.clone()),
            },
        };
        token.as_deref().map(bearer).transpose()
    }
}

/// The header with a token.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue, Failure> {
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Failure::usage("show the token: it has characters that no token has"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// A login that is kept.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Login {
    pub(crate) token: String,
}

/// The logins of this user of the machine, by the addresses of servers.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Logins(BTreeMap<String, Login>);

impl Logins {
    fn file() -> Option<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
        Some(config.join("kelos").join("logins.json"))
    }

    /// Those that are kept.
    pub(crate) fn read() -> Result<Logins, Failure> {
        let Some(file) = Logins::file() else { return Ok(Logins::default()) };
        let Ok(text) = std::fs::read_to_string(&file) else { return Ok(Logins::default()) };
        let fail = |why: String| Failure::bad(format!("use the logins in {}: {why}", file.display()));
        let mode = std::fs::metadata(&file).map_or(0, |meta| meta.mode());
        if mode & 0o077 != 0 {
            let why = format!("its permissions are {:o}, so that others may read it", mode & 0o777);
            return Err(fail(why).hint(format!("chmod 600 {}", file.display())));
        }
        serde_json::from_str(&text).map_err(|error| fail(error.to_string()))
    }

    /// The login at a server.
    pub(crate) fn of(&self, base: &str) -> Option<&Login> {
        self.0.get(base.trim_end_matches('/'))
    }

    /// Keeps a login, in place of the one before; none forgets it.
    pub(crate) fn keep(mut self, base: &str, login: Option<Login>) -> Result<PathBuf, Failure> {
        let base = base.trim_end_matches('/');
        match login {
            Some(login) => self.0.insert(base.to_owned(), login),
            None => self.0.remove(base),
        };
        let file =
            Logins::file().ok_or_else(|| Failure::bad("keep the login: neither HOME nor XDG_CONFIG_HOME is set"))?;
        write_private(&file, &self)
            .map_err(|error| Failure::bad(format!("keep the login in {}: {error}", file.display())))?;
        Ok(file)
    }
}

fn write_private(file: &Path, logins: &Logins) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = file.with_extension(format!("json.{}", std::process::id()));
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    new.write_all(&serde_json::to_vec_pretty(logins)?)?;
    std::fs::rename(&beside, file)
}

/// A secret that somebody types, without showing it; or the first line of standard input, where nobody types.
pub(crate) fn secret(asked: &str) -> Result<String, Failure> {
    let fail = |error: &dyn std::fmt::Display| Failure::bad(format!("read the {asked}: {error}"));
    let stdin = std::io::stdin();
    let hidden = if stdin.is_terminal() {
        eprint!("{asked}: ");
        Some(SilentTerminal::begin().map_err(|error| fail(&error))?)
    } else {
        None
    };
    let mut line = String::new();
    stdin.lock().read_line(&mut line).map_err(|error| fail(&error))?;
    if hidden.is_some() {
        eprintln!();
    }
    let line = line.trim_end_matches(['\r', '\n']).to_owned();
    if line.is_empty() { Err(Failure::usage(format!("read the {asked}: nothing was given"))) } else { Ok(line) }
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct SilentTerminal(rustix::termios::Termios);

impl SilentTerminal {
    fn begin() -> std::io::Result<SilentTerminal> {
        let before = tcgetattr(std::io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(SilentTerminal(before))
    }
}

impl Drop for SilentTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
