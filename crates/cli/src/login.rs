//! `kelos login`, `logout` and `whoami`: the credential that this user of the machine shows to a server.

use std::path::PathBuf;

use kelos_wire::{IdentityDto, LoginRequest, NewTokenDto};

use crate::accounts::of_file;
use crate::address::{Query, escape};
use crate::client::{Client, Reply};
use crate::connection::Connection;
use crate::credential::{Login, Logins, secret};
use crate::failure::Failure;
use crate::location::Location;
use crate::options::Door;
use crate::text::{self as words, duration};
use crate::trust::TrustOptions;

#[derive(clap::Args)]
pub(crate) struct LoginArgs {
    /// Address of the server [default: KELOS_SERVER, or the server of this folder]
    url: Option<String>,
    /// Log in with the name and the password of this user, instead of with a token that you have
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// File with the password of that user [default: it is asked for, or read from standard input]
    #[arg(long, value_name = "FILE", requires = "user", value_hint = clap::ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// How long the new token is valid, with --user
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = duration)]
    expires: jiff::SignedDuration,
    /// Send the password without TLS to another machine
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    trust: TrustOptions,
}

#[derive(clap::Args)]
pub(crate) struct LogoutArgs {
    /// Address of the server [default: KELOS_SERVER, or the server of this folder]
    url: Option<String>,
    #[command(flatten)]
    trust: TrustOptions,
}

#[derive(clap::Args)]
pub(crate) struct WhoamiArgs {
    #[command(flatten)]
    door: Door,
}

/// The address of a server that was named, or that of this folder.
fn base(url: Option<&String>) -> Result<String, Failure> {
    let named = url.cloned().or_else(|| std::env::var("KELOS_SERVER").ok()).filter(|url| !url.is_empty());
    let base = named.or_else(|| Location::nearby().map(|location| location.address));
    let base =
        base.ok_or_else(|| Failure::usage("log in: no server is named").hint("kelos login https://kelos.example"))?;
    let base = if base.contains("://") { base } else { format!("http://{base}") };
    Ok(base.trim_end_matches('/').to_owned())
}

/// Whether what is sent to an address can be heard by others.
fn is_open(base: &str) -> bool {
    let Some(rest) = base.strip_prefix("http://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
    let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    !is_loopback && host != "localhost"
}

pub(crate) fn login(args: &LoginArgs) -> Result<u8, Failure> {
    let base = base(args.url.as_ref())?;
    if is_open(&base) && !args.insecure {
        return Err(Failure::usage(format!("log in to {base}: others could read what is sent there"))
            .hint("use its https:// address, or --insecure if you trust the network"));
    }
    let token = match &args.user {
        Some(user) => {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let usable = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
            let host: String = host.chars().filter(|letter| usable(*letter)).take(40).collect();
            let asked = LoginRequest {
                user: user.clone(),
                password: match &args.password_file {
                    Some(file) => of_file(file)?,
                    None => secret("password")?,
                },
                name: format!("cli-{host}"),
                expires_in: u64::try_from(args.expires.as_secs()).ok(),
            };
            let client = Client::at(&base, &args.trust)?;
            let new: NewTokenDto = client.post("log in", "/login", &asked)?;
            new.secret
        }
        None => match args.trust.token.named()? {
            Some(token) => token,
            None => secret("token")?,
        },
    };
    let client = Client::at(&base, &args.trust)?.with_token(Some(&token))?;
    let known: IdentityDto = client.get("log in", "/whoami", &Query::new())?;
    if known.required && known.credential.is_none() {
        return Err(Failure::bad(format!("log in to {base}: the server does not know the token")));
    }
    let file = Logins::read()?.keep(&base, Some(Login { token }))?;
    words::line(format!(
        "Logged in to {base} as {} ({}); the token is in {}.",
        known.name,
        roles(&known),
        file.display()
    ));
    Ok(0)
}

fn roles(known: &IdentityDto) -> String {
    if known.roles.is_empty() { "no role".to_owned() } else { known.roles.join(", ") }
}

pub(crate) fn logout(args: &LogoutArgs) -> Result<u8, Failure> {
    let base = base(args.url.as_ref())?;
    let logins = Logins::read()?;
    let Some(login) = logins.of(&base).cloned() else {
        words::line(format!("Not logged in to {base}."));
        return Ok(0);
    };
    // The token is revoked if the server still lets it; it is forgotten in any case.
    let client = Client::at(&base, &args.trust)?.with_token(Some(&login.token))?;
    let revoked =
        client.get::<IdentityDto>("log out", "/whoami", &Query::new()).and_then(|known| match known.credential {
            Some(id) => client.remove("revoke the token", &format!("/tokens/{}", escape(&id)), &Query::new()),
            None => Ok(()),
        });
    logins.keep(&base, None)?;
    words::line(match revoked {
        Ok(()) => format!("Logged out of {base}, and revoked the token."),
        Err(_) => format!("Logged out of {base}. The token could not be revoked there, and opens it until it expires."),
    });
    Ok(0)
}

pub(crate) fn whoami(args: &WhoamiArgs) -> Result<u8, Failure> {
    let client = Connection::open(&args.door)?;
    let known: Reply<IdentityDto> = client.get("ask who you are", "/whoami", &Query::new())?;
    if args.door.form.json {
        words::json(&known);
        return Ok(0);
    }
    words::line(match (known.required, &known.credential) {
        (false, None) => format!("{}; this server asks nobody who they are", known.name),
        (_, None) => "nobody: no credential was shown".to_owned(),
        (_, Some(credential)) => format!("{}, by {credential}: {}", known.name, roles(&known)),
    });
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::is_open;

    #[test]
    fn what_others_can_hear_is_told() {
        for open in ["http://kelos.example", "http://10.0.0.1:7437", "http://localhost.example/"] {
            assert!(is_open(open), "{open}");
        }
        for closed in ["https://kelos.example", "http://127.0.0.1:1", "http://[::1]:7437/", "http://localhost:7437"] {
            assert!(!is_open(closed), "{closed}");
        }
    }
}
