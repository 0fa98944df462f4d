//! `kelos user`, `token` and `audit`: who may come in, and who did what.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use comfy_table::Cell;
use jiff::SignedDuration;
use kelos_wire::{AuditDto, ListDto, NewTokenDto, TokenDto, TokenRequest, UserDto, UserRequest, words as log};

use crate::address::{Query, escape};
use crate::client::Reply;
use crate::connection::Connection;
use crate::credential::secret;
use crate::failure::Failure;
use crate::options::{Because, Door};
use crate::render;
use crate::text::{self as words, duration};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct UserArgs {
    #[command(subcommand)]
    what: Option<UserAction>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Subcommand)]
enum UserAction {
    /// List the users
    List(ListArgs),
    /// Make a user, who signs in with a password
    Add(AddUserArgs),
    /// Change the roles or the password of a user, or whether the user may come in
    Change(ChangeUserArgs),
    /// Remove a user; sessions and tokens end with it
    Remove(NamedArgs),
}

#[derive(clap::Args)]
struct ListArgs {
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct AddUserArgs {
    /// Name of the user
    name: String,
    /// Role: view, operate, author, admin or audit, for all projects or for one as in operate@warehouse; may be repeated
    #[arg(long = "role", value_name = "ROLE[@PROJECT]", required = true)]
    roles: Vec<String>,
    /// File with the password [default: it is asked for, or read from standard input]
    #[arg(long, value_name = "FILE", conflicts_with = "no_password", value_hint = clap::ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// Without a password: a proxy or a provider signs the user in
    #[arg(long)]
    no_password: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct ChangeUserArgs {
    /// Name of the user
    name: String,
    /// Roles in place of those that the user has; may be repeated
    #[arg(long = "role", value_name = "ROLE[@PROJECT]")]
    roles: Vec<String>,
    /// Ask for a new password, which ends the user's sessions
    #[arg(long)]
    password: bool,
    /// File with the new password
    #[arg(long, value_name = "FILE", conflicts_with = "password", value_hint = clap::ValueHint::FilePath)]
    password_file: Option<PathBuf>,
    /// Keep the user out, with all sessions and tokens
    #[arg(long, conflicts_with = "enable")]
    disable: bool,
    /// Let the user in again
    #[arg(long)]
    enable: bool,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Args)]
struct NamedArgs {
    /// Name; of a token its id, or its name if no other token has it
    name: String,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn user(args: &UserArgs) -> Result<u8, Failure> {
    match &args.what {
        None => users(&args.door),
        Some(UserAction::List(list)) => users(&list.door),
        Some(UserAction::Add(add)) => {
            let password = match (&add.password_file, add.no_password) {
                (_, true) => None,
                (Some(file), _) => Some(of_file(file)?),
                (None, _) => Some(secret("password")?),
            };
            let request = UserRequest { roles: Some(add.roles.clone()), password, ..UserRequest::default() };
            change_user(&add.name, request, &add.because, &add.door)
        }
        Some(UserAction::Change(change)) => {
            let password = match (&change.password_file, change.password) {
                (Some(file), _) => Some(of_file(file)?),
                (None, true) => Some(secret("new password")?),
                (None, false) => None,
            };
            let roles = Some(change.roles.clone()).filter(|roles| !roles.is_empty());
            let disabled = (change.disable || change.enable).then_some(change.disable);
            if password.is_none() && roles.is_none() && disabled.is_none() {
                let why = "change the user: nothing to change was named";
                return Err(Failure::usage(why).hint("--role, --password, --disable or --enable"));
            }
            let request = UserRequest { roles, password, disabled, reason: None };
            change_user(&change.name, request, &change.because, &change.door)
        }
        Some(UserAction::Remove(removed)) => remove(removed, "users", "remove the user", "is removed"),
    }
}

/// The password in a file, without the line break at its end.
pub(crate) fn of_file(file: &Path) -> Result<String, Failure> {
    let fail = |error: std::io::Error| Failure::usage(format!("read the password in {}: {error}", file.display()));
    Ok(std::fs::read_to_string(file).map_err(fail)?.trim_end_matches(['\r', '\n']).to_owned())
}

fn change_user(name: &str, request: UserRequest, because: &Because, door: &Door) -> Result<u8, Failure> {
    let request = UserRequest { reason: because.reason.clone(), ..request };
    let path = format!("/users/{}", escape(name));
    let user: Reply<UserDto> =
        Connection::open(door)?.put(&format!("change the user {name}"), &path, &Query::new(), &request)?;
    if door.form.json {
        words::json(&user);
        return Ok(0);
    }
    let state = if user.disabled { "may not come in" } else { "may come in" };
    words::line(format!("{} {state}: {}", user.name, user.roles.join(", ")));
    Ok(0)
}

fn remove(args: &NamedArgs, of: &str, doing: &str, done: &str) -> Result<u8, Failure> {
    let mut query = Query::new();
    query.add_some("reason", args.because.reason.as_ref());
    let path = format!("/{of}/{}", escape(&args.name));
    Connection::open(&args.door)?.remove(&format!("{doing} {}", args.name), &path, &query)?;
    words::line(format!("{} {done}", args.name));
    Ok(0)
}

fn users(door: &Door) -> Result<u8, Failure> {
    let found: Reply<ListDto<UserDto>> = Connection::open(door)?.get("list the users", "/users", &Query::new())?;
    if door.form.json {
        words::json(&found);
        return Ok(0);
    }
    if found.items.is_empty() {
        words::line("There are no users. `kelos user add NAME --role ROLE` makes one.");
        return Ok(0);
    }
    let mut table = render::table(&["USER", "ROLES", "COMES IN BY"]);
    for user in &found.items {
        let by = match (user.disabled, user.has_password) {
            (true, _) => "may not come in",
            (false, true) => "password",
            (false, false) => "proxy or provider",
        };
        table.add_row([Cell::new(&user.name), Cell::new(user.roles.join(", ")), Cell::new(by)]);
    }
    render::print(table);
    Ok(0)
}

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    what: Option<TokenAction>,
    #[command(flatten)]
    door: Door,
}

#[derive(clap::Subcommand)]
enum TokenAction {
    /// List tokens: all for auditors, your own otherwise
    List(ListArgs),
    /// Make a token for a program; it is shown this once
    Add(AddTokenArgs),
    /// Revoke a token: it opens nothing any more
    Revoke(NamedArgs),
}

#[derive(clap::Args)]
struct AddTokenArgs {
    /// Name of the program, as the log will have it
    name: String,
    /// Role: view, operate, author, admin, audit or worker, for all projects or for one as in operate@warehouse; may be
    /// repeated
    #[arg(long = "role", value_name = "ROLE[@PROJECT]", required = true)]
    roles: Vec<String>,
    /// How long it is valid; without it, until it is revoked
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    expires: Option<SignedDuration>,
    /// Write the token to this new file, which only you can read, instead of printing it
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn token(args: &TokenArgs) -> Result<u8, Failure> {
    match &args.what {
        None => tokens(&args.door),
        Some(TokenAction::List(list)) => tokens(&list.door),
        Some(TokenAction::Add(add)) => add_token(add),
        Some(TokenAction::Revoke(revoked)) => remove(revoked, "tokens", "revoke the token", "is revoked"),
    }
}

fn add_token(args: &AddTokenArgs) -> Result<u8, Failure> {
    // Before the token is made: it is shown this once.
    let file = args.out.as_ref().map(|out| {
        let open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(out);
        open.map_err(|error| Failure::usage(format!("write the token to {}: {error}", out.display())))
    });
    let file = file.transpose()?;
    let request = TokenRequest {
        name: args.name.clone(),
        roles: args.roles.clone(),
        expires_in: args.expires.and_then(|expires| u64::try_from(expires.as_secs()).ok()),
        reason: args.because.reason.clone(),
    };
    let made = Connection::open(&args.door).and_then(|client| client.post("make the token", "/tokens", &request));
    if let (Err(_), Some(out)) = (&made, &args.out) {
        let _ = std::fs::remove_file(out);
    }
    let made: Reply<NewTokenDto> = made?;
    if let (Some(mut file), Some(out)) = (file, &args.out) {
        file.write_all(format!("{}\n", made.secret).as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
            let _ = std::fs::remove_file(out);
            take_back(args, &made, Failure::bad(format!("write the token to {}: {error}", out.display())))
        })?;
        words::line(format!("{} ({}) is in {}", made.token.name, made.token.id, out.display()));
        return Ok(0);
    }
    let kept =
        |text: String| words::write(text.as_bytes()).map_err(|error| take_back(args, &made, words::unwritten(&error)));
    if args.door.form.json {
        kept(words::json_text(&made))?;
        return Ok(0);
    }
    // The token alone is on standard output, so that it can be piped into a store of secrets.
    words::note(format!(
        "{} ({}): {}. It is shown this once:",
        made.token.name,
        made.token.id,
        made.token.roles.join(", ")
    ));
    kept(format!("{}\n", made.secret))?;
    Ok(0)
}

/// Revokes a token that nobody has been told, as its text could not be written.
fn take_back(args: &AddTokenArgs, made: &NewTokenDto, failure: Failure) -> Failure {
    let id = &made.token.id;
    let mut query = Query::new();
    query.add("reason", "its text could not be written");
    let path = format!("/tokens/{}", escape(id));
    let revoked = Connection::open(&args.door).and_then(|client| client.remove("revoke the token", &path, &query));
    match revoked {
        Ok(_) => failure.hint(format!("the token {id} was revoked again; make another one")),
        Err(_) => failure.hint(format!("`kelos token revoke {id}` revokes the token that nobody has")),
    }
}

fn tokens(door: &Door) -> Result<u8, Failure> {
    let found: Reply<ListDto<TokenDto>> = Connection::open(door)?.get("list the tokens", "/tokens", &Query::new())?;
    if door.form.json {
        words::json(&found);
        return Ok(0);
    }
    if found.items.is_empty() {
        words::line("There are no tokens. `kelos token add NAME --role ROLE` makes one.");
        return Ok(0);
    }
    let mut table = render::table(&["ID", "TOKEN", "ROLES", "OWNER", "EXPIRES", "LAST USED"]);
    for token in &found.items {
        let at = |at: &Option<kelos_wire::Instant>, none: &str| {
            Cell::new(at.as_ref().map_or_else(|| none.to_owned(), |at| at.short()))
        };
        table.add_row([
            Cell::new(&token.id),
            Cell::new(&token.name),
            Cell::new(token.roles.join(", ")),
            Cell::new(token.owner.as_deref().unwrap_or("–")),
            at(&token.expires_at, "never"),
            at(&token.last_used_at, "never"),
        ]);
    }
    render::print(table);
    Ok(0)
}

#[derive(clap::Args)]
pub(crate) struct AuditArgs {
    /// Only what this person or program did
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
    /// Only what was done with this credential, such as the id of a token
    #[arg(long, value_name = "ID")]
    credential: Option<String>,
    /// Show at most this many, newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    door: Door,
}

pub(crate) fn audit(args: &AuditArgs) -> Result<u8, Failure> {
    let mut query = Query::new();
    query.add_some("who", args.who.as_ref());
    query.add_some("credential", args.credential.as_ref());
    let client = Connection::open(&args.door)?;
    let (rows, more): (Vec<Reply<AuditDto>>, bool) = client.list("read the record", "/audit", &query, args.limit)?;
    if args.door.form.json {
        words::json_rows(&rows, more);
        return Ok(0);
    }
    let mut table = render::table(&["TIME", "WHO", "CREDENTIAL", "FROM", "ABOUT", "WHAT"]);
    for row in &rows {
        let event = &row.event;
        let what = [log::name(event).to_owned(), log::details(event)];
        table.add_row([
            Cell::new(event.at.exact()),
            Cell::new(&row.who),
            Cell::new(row.credential.as_deref().unwrap_or("–")),
            Cell::new(row.address.as_deref().unwrap_or("–")),
            Cell::new(log::subject(event)),
            Cell::new(what.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(": ")),
        ]);
    }
    render::print(table);
    if more {
        words::line("There is more; --limit shows it.");
    }
    Ok(0)
}
