//! Masks of secrets, on pages and in every API.
//!
//! What declares a secret is shown, as it names the source and has no value; its value is masked wherever a job says it. In scripts people
//! write values all the same: there the variables of an environment and the headers of a request are masked unless their names are known to
//! be harmless, and anything else in the settings of a job if its name or its form is that of a secret. Data is shown as it is: the properties
//! of event schedules, arguments, outputs, payloads and registers, which clients read, change and send back.
//! What is *absent*: ways to see what is masked.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::declared::{DeclaredSecret, SecretSource};

/// The text that replaces a secret.
pub const MASK: &str = "••••••";

/// Parts of names whose values are secrets.
const SECRET: [&str; 15] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "credential",
    "authorization",
    "cookie",
    "signature",
    "sessionid",
    "dsn",
    "bearer",
    "jwt",
    "connectionstring",
    "connstr",
    "sharedaccess",
];

/// Ends of names of keys that are secrets. Most keys are none: `sortKey`, `partitionKey`, `someKey`.
const SECRET_KEYS: [&str; 12] = [
    "apikey",
    "accesskey",
    "authkey",
    "encryptionkey",
    "hostkey",
    "licensekey",
    "masterkey",
    "privatekey",
    "secretkey",
    "signingkey",
    "sshkey",
    "storagekey",
];

/// Fields whose values are masked unless their names are among [`HARMLESS`].
const MASKED_BY_DEFAULT: [&str; 3] = ["env", "environment", "headers"];

/// Variables and headers that hold no secret. A name ends here with a `*` where all that begin so are meant.
const HARMLESS: [&str; 29] = [
    "path",
    "home",
    "user",
    "logname",
    "shell",
    "lang",
    "language",
    "lc*",
    "tz",
    "term",
    "tmpdir",
    "hostname",
    "host",
    "pythonpath",
    "pythonunbuffered",
    "ldlibrarypath",
    "classpath",
    "javahome",
    "sparkhome",
    "sparkconfdir",
    "hadoophome",
    "hadoopconfdir",
    "hadoopusername",
    "hivehome",
    "oozieurl",
    "accept*",
    "contenttype",
    "contentlength",
    "useragent",
];

/// A value with everything masked that looks like a secret, by its name or by its form.
pub fn masked(value: &Value) -> Value {
    match value {
        value if is_declared(value) => value.clone(),
        Value::Object(fields) => Value::Object(masked_fields(fields)),
        Value::Array(items) => Value::Array(masked_items(items)),
        Value::String(text) => Value::String(masked_text(text)),
        other => other.clone(),
    }
}

/// An object with everything masked that looks like a secret.
pub fn masked_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let masked = |(name, value): (&String, &Value)| {
        let shown = match value {
            Value::Null => Value::Null,
            value if is_declared(value) => value.clone(),
            Value::Object(variables) if is_masked_by_default(name) => Value::Object(masked_variables(variables)),
            _ if is_secret(name) => MASK.into(),
            value => masked(value),
        };
        (name.clone(), shown)
    };
    fields.iter().map(masked).collect()
}

/// Named texts with everything masked that looks like a secret.
pub fn masked_texts(texts: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let masked = |(name, text): (&String, &String)| {
        (name.clone(), if is_secret(name) { MASK.to_owned() } else { masked_text(text) })
    };
    texts.iter().map(masked).collect()
}

/// Restores the texts that a client received as masks, from this version or an earlier one, and sent back: a mask means that the text
/// stays as it is. One in whose place nothing is stored stays a mask, which [`first_mask`] finds.
pub fn unmask(given: &mut BTreeMap<String, String>, stored: &BTreeMap<String, String>) {
    for (name, text) in given.iter_mut().filter(|(_, text)| text.contains(MASK)) {
        if let Some(stored) = stored.get(name).filter(|stored| text == MASK || *text == masked_text(stored)) {
            text.clone_from(stored);
        }
    }
}

/// The path of the first text with a mask in it: `env.TOKEN`. A mask is never stored in the place of a value.
#[must_use]
pub fn first_mask<'v>(fields: impl IntoIterator<Item = (&'v String, &'v Value)>) -> Option<String> {
    let path = |name: &str, rest: String| if rest.is_empty() { name.to_owned() } else { format!("{name}.{rest}") };
    fields.into_iter().find_map(|(name, value)| Some(path(name, mask_in(value)?)))
}

/// The path of the first mask within a value; empty for the value itself.
fn mask_in(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains(MASK).then(String::new),
        Value::Array(items) => {
            let found = items.iter().enumerate().find_map(|(at, item)| Some((at, mask_in(item)?)));
            found.map(|(at, rest)| if rest.is_empty() { at.to_string() } else { format!("{at}.{rest}") })
        }
        Value::Object(fields) => first_mask(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Whether a value is the declaration of a secret, which has its source and not its value.
fn is_declared(value: &Value) -> bool {
    matches!(DeclaredSecret::of(value), Some(Ok(_)))
}

/// Variables of an environment, or headers. `{env: NAME}`, as older definitions have it, only names a variable, and is shown.
fn masked_variables(variables: &Map<String, Value>) -> Map<String, Value> {
    let masked = |(name, value): (&String, &Value)| {
        let is_named = is_declared(value) || value.get("env").is_some_and(Value::is_string);
        let is_shown = is_harmless(name) || value.is_null() || is_named;
        (name.clone(), if is_shown { masked(value) } else { MASK.into() })
    };
    variables.iter().map(masked).collect()
}

/// `--password VALUE` hides the value, as the argument after a name that is one of a secret.
fn masked_items(items: &[Value]) -> Vec<Value> {
    let names_secret = |item: &Value| item.as_str().is_some_and(names_secret_option);
    let before = std::iter::once(None).chain(items.iter().map(Some));
    let hidden = |before: Option<&Value>| before.is_some_and(names_secret);
    items.iter().zip(before).map(|(item, before)| if hidden(before) { MASK.into() } else { masked(item) }).collect()
}

/// The paths of texts and numbers in the settings of a job that are secrets by their names or by their forms, such as
/// `env.DB_PASSWORD`. Texts that only name a placeholder are none.
pub fn literal_secrets(settings: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    settings.iter().for_each(|(name, value)| collect_literals(name, is_secret(name), value, &mut found));
    found
}

fn collect_literals(path: &str, is_secret_name: bool, value: &Value, found: &mut Vec<String>) {
    match value {
        value if is_declared(value) => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| {
                collect_literals(&format!("{path}.{name}"), is_secret_name || is_secret(name), value, found);
            });
        }
        Value::Array(items) => {
            let shown = masked_items(items);
            let hidden = |n: usize| shown.get(n).is_some_and(|shown| shown.as_str() == Some(MASK));
            items.iter().enumerate().for_each(|(n, item)| {
                collect_literals(&format!("{path}[{n}]"), is_secret_name || hidden(n), item, found);
            });
        }
        Value::String(text) => {
            let own = without_values(text);
            if !own.trim().is_empty() && (is_secret_name || masked_text(&own) != own) {
                found.push(path.to_owned());
            }
        }
        Value::Number(_) if is_secret_name => found.push(path.to_owned()),
        _ => {}
    }
}

/// A text without what takes its value from elsewhere, `${name}`, `$NAME` and `$(command)`, and without quotes and the headers
/// that such values follow.
fn without_values(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, from)) = rest.split_once('$') {
        own.push_str(without_header(before));
        let end = match from.chars().next() {
            Some('{') => from.find('}').map(|end| end + 1),
            Some('(') => from.find(')').map(|end| end + 1),
            _ => from.find(|letter: char| !(letter.is_alphanumeric() || letter == '_')),
        };
        rest = from.get(end.unwrap_or(from.len())..).unwrap_or_default();
    }
    own.push_str(rest);
    own.replace(['"', '\''], "")
}

/// A text without the name of a header and the scheme at its end, as in `-H "Authorization: Bearer `.
fn without_header(text: &str) -> &str {
    let name = text.trim_end_matches(['"', '\'', ' ']);
    let name = ["Bearer", "Basic"].iter().find_map(|scheme| name.strip_suffix(scheme)).unwrap_or(name).trim_end();
    let Some(name) = name.strip_suffix(':') else { return text };
    name.trim_end_matches(|letter: char| letter.is_alphanumeric() || letter == '-')
}

/// The form of a name for comparisons: without case and separators.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Whether a value under such a name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = plain(name);
    SECRET_KEYS.iter().any(|end| name.ends_with(end)) || name == "auth" || SECRET.iter().any(|part| name.contains(part))
}

fn is_masked_by_default(name: &str) -> bool {
    MASKED_BY_DEFAULT.contains(&plain(name).as_str())
}

/// Whether a variable or a header of such a name holds no secret.
fn is_harmless(name: &str) -> bool {
    let name = plain(name);
    HARMLESS.iter().any(|known| known.strip_suffix('*').map_or(*known == name, |begin| name.starts_with(begin)))
}

/// A text without the passwords of its URIs and without the values of its assignments to secrets.
pub fn masked_text(text: &str) -> String {
    if !text.contains(['=', '@', ':', '-']) {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut rest = text;
    let mut hides_next = false;
    while let Some(end) = rest.find(char::is_whitespace).map(|at| at + 1).or((!rest.is_empty()).then_some(rest.len())) {
        let Some((word, after)) = rest.split_at_checked(end) else { break };
        // A header: all that follows its name belongs to it.
        if word.trim_end().strip_suffix(':').is_some_and(is_secret) && !after.is_empty() {
            return shown + word + MASK;
        }
        let (bare, space) = word.split_at(word.trim_end().len());
        let is_hidden = std::mem::take(&mut hides_next) && !bare.is_empty();
        shown = if is_hidden { shown + MASK + space } else { shown + &masked_word(word) };
        hides_next = !is_hidden && names_secret_option(bare);
        rest = after;
    }
    shown + rest
}

/// Whether an argument is an option such as `--password`, whose value is the argument after it.
fn names_secret_option(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains(['=', ' ']) && is_secret(argument)
}

fn masked_word(word: &str) -> String {
    let end = word.trim_end().len();
    let (word, space) = word.split_at(end);
    let shown = match word.contains("://") {
        true => without_user(word).split_inclusive(['?', '&', ';']).map(masked_parameter).collect(),
        false => match word.split_once('=').filter(|(name, value)| !value.is_empty() && is_secret(name)) {
            Some((name, _)) => format!("{name}={MASK}"),
            None => word.to_owned(),
        },
    };
    shown + space
}

/// The parameters of an address, `name=value&`, with secrets masked.
fn masked_parameter(part: &str) -> String {
    let (pair, separator) = part.split_at(part.trim_end_matches(['?', '&', ';']).len());
    match pair.split_once('=').filter(|(name, _)| is_secret(name)) {
        Some((name, _)) => format!("{name}={MASK}{separator}"),
        None => part.to_owned(),
    }
}

/// An address without its password: `scheme://user:password@host`.
fn without_user(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let authority = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest[..authority].rfind('@') else { return word.to_owned() };
    match rest[..at].split_once(':').filter(|(_, password)| !password.is_empty()) {
        Some((user, _)) => format!("{scheme}://{user}:{MASK}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

/// The text of a script or a JSON file without the texts and numbers that belong to names of secrets, and without those of
/// environments. Lines stay lines, so that their numbers hold.
pub fn masked_source(source: &str) -> String {
    let mut scan = Scan { shown: String::with_capacity(source.len()), open: Vec::new() };
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        let taken = scan.take(letter, rest);
        rest = rest.get(taken.max(1)..).unwrap_or_default();
    }
    scan.shown
}

/// A source that is read from its beginning, as far as it has been shown.
struct Scan {
    shown: String,
    /// For each open brace, whether what is named within is masked unless it is harmless.
    open: Vec<bool>,
}

impl Scan {
    /// Shows what begins with `letter`, and says how many bytes that was.
    fn take(&mut self, letter: char, rest: &str) -> usize {
        match letter {
            '\'' | '"' | '`' => {
                if let Some(inside) = quoted(rest, letter) {
                    self.show_text(letter, inside);
                    return inside.len() + 2;
                }
            }
            '0'..='9' => {
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).unwrap_or(rest.len());
                let is_name = self.shown.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$'));
                let number = rest.get(..end).unwrap_or_default();
                self.shown.push_str(if !is_name && self.is_hidden() { MASK } else { number });
                return end;
            }
            '{' => {
                let by_default = self.name().is_some_and(|name| is_masked_by_default(&name));
                self.open.push(by_default);
            }
            '}' => {
                self.open.pop();
            }
            _ => {}
        }
        self.shown.push(letter);
        letter.len_utf8()
    }

    fn show_text(&mut self, quote: char, inside: &str) {
        let is_source = self.name().as_deref() == Some("secret") && SecretSource::parse(inside).is_ok();
        let is_hidden = self.is_hidden() && !inside.is_empty() && !is_source;
        self.shown.push(quote);
        if is_hidden {
            self.shown.push_str(MASK);
            self.shown.extend(inside.matches('\n'));
        } else {
            let lines: Vec<String> = inside.split('\n').map(masked_text).collect();
            self.shown.push_str(&lines.join("\n"));
        }
        self.shown.push(quote);
    }

    /// Whether the value that comes next is a secret, by the name before it and by the braces around it.
    fn is_hidden(&self) -> bool {
        if self.argument_before().is_some_and(names_secret_option) {
            return true;
        }
        let by_default = self.open.last().is_some_and(|by_default| *by_default);
        self.name().is_some_and(|name| is_secret(&name) || by_default && !is_harmless(&name))
    }

    /// The text in quotes before a comma at the end of what has been shown.
    fn argument_before(&self) -> Option<&str> {
        let text = self.shown.trim_end().strip_suffix(',')?.trim_end();
        let quote = text.chars().next_back().filter(|quote| matches!(quote, '\'' | '"' | '`'))?;
        let text = text.strip_suffix(quote)?;
        text.get(text.rfind(quote)? + 1..)
    }

    /// The name before a `:` or `=` at the end of what has been shown.
    fn name(&self) -> Option<String> {
        let text = self.shown.trim_end().strip_suffix([':', '='])?.trim_end();
        let text = text.trim_end_matches(['\'', '"', '`']);
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
        let start = text.rfind(|c: char| !is_part(c)).map_or(0, |at| at + 1);
        text.get(start..).map(str::to_owned)
    }
}

/// The inside of the text in quotes at the beginning; none where it is no text, but an apostrophe in a comment.
fn quoted(rest: &str, quote: char) -> Option<&str> {
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '\n' if quote != '`' => return None,
            letter if letter == quote => return rest.get(1..at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_under_names_of_secrets_are_hidden_however_deep() {
        let settings = json!({
            "env": { "DB_PASSWORD": "hunter2", "API_KEY": "k", "HOME": "/h", "TOKENS": ["a"], "REGION": "eu", "LC_ALL": "C" },
            "headers": { "Authorization": "Bearer x", "Accept": "*/*", "X-Team": { "env": "TEAM" } },
            "DBPASS": "x", "dbPass": "x", "MYSQL_PWD": "x", "masterKey": "x", "partitionKey": "p", "key": "k", "someKey": "s",
            "oozie.wf.application.path": "/app", "secretKey": 7, "password": null,
        });
        let shown = json!({
            "env": { "DB_PASSWORD": MASK, "API_KEY": MASK, "HOME": "/h", "TOKENS": MASK, "REGION": MASK, "LC_ALL": "C" },
            "headers": { "Authorization": MASK, "Accept": "*/*", "X-Team": { "env": "TEAM" } },
            "DBPASS": MASK, "dbPass": MASK, "MYSQL_PWD": MASK, "masterKey": MASK, "partitionKey": "p", "key": "k", "someKey": "s",
            "oozie.wf.application.path": "/app", "secretKey": MASK, "password": null,
        });
        assert_eq!(masked(&settings), shown);
    }

    #[test]
    fn a_declared_secret_is_shown_as_it_is() {
        let declared = json!({
            "env": {"DB_PASSWORD": {"secret": "env:KELOS_SECRET_DB"}, "A": {"secret": "hunter2"}},
            "headers": {"Authorization": {"secret": "file:/run/secrets/t", "prefix": "Bearer "}},
            "password": {"secret": "exec:pass show db"}, "other": {"secret": "env:X", "more": 1},
        });
        let shown = masked(&declared);
        assert_eq!(shown["headers"], declared["headers"]);
        assert_eq!(shown["password"], declared["password"]);
        assert_eq!(shown["env"], json!({"DB_PASSWORD": {"secret": "env:KELOS_SECRET_DB"}, "A": MASK}));
        assert_eq!(shown["other"], json!({"secret": MASK, "more": 1}));
        let source = "env: { DB_PASSWORD: {secret: 'env:KELOS_SECRET_DB'}, B: {secret: 'hunter2'} }";
        assert_eq!(masked_source(source), source.replace("hunter2", MASK));
    }

    #[test]
    fn literals_are_found_where_they_stand() {
        let settings = json!({
            "env": {"DB_PASSWORD": "hunter2", "API_KEY": {"secret": "env:K"}, "REGION": "eu", "TOKEN": "${token}", "PW_PASS": ""},
            "command": ["curl", "--token", "t0p", "https://u:p@h/"], "body": {"password": 7, "list": [{"token": "x"}]},
        });
        assert_eq!(
            literal_secrets(settings.as_object().unwrap()),
            ["env.DB_PASSWORD", "command[2]", "command[3]", "body.password", "body.list[0].token"]
        );
        for shell in [
            "psql --password \"$PGPASSWORD\"",
            "curl -H 'Authorization: Bearer '$TOKEN https://u:$PW@h/",
            "login --token $(cat t)",
        ] {
            assert!(literal_secrets(json!({ "shell": shell }).as_object().unwrap()).is_empty(), "{shell}");
        }
    }

    #[test]
    fn arguments_and_uris_are_hidden_too() {
        let command =
            json!(["curl", "--token", "t0p", "--password=x", "https://u:p@h/a", "PGPASSWORD=x psql -c 'select 1'"]);
        let shown = json!([
            "curl",
            "--token",
            MASK,
            format!("--password={MASK}"),
            format!("https://u:{MASK}@h/a"),
            format!("PGPASSWORD={MASK} psql -c 'select 1'")
        ]);
        assert_eq!(masked(&command), shown);
        assert_eq!(masked_text("http://h/?a=b&access_token=x&c=d"), format!("http://h/?a=b&access_token={MASK}&c=d"));
        assert_eq!(masked_text("curl --token t0p -k x"), format!("curl --token {MASK} -k x"));
        assert_eq!(masked_text("Authorization: Bearer x y"), format!("Authorization: {MASK}"));
    }

    #[test]
    fn lines_of_scripts_show_no_secrets() {
        for (line, shown) in [
            ("  password: 'hunter2', user: 'me'", format!("  password: '{MASK}', user: 'me'")),
            ("{ \"DB_TOKEN\" : \"x\" }", format!("{{ \"DB_TOKEN\" : \"{MASK}\" }}")),
            ("var apiKey = `k`;", format!("var apiKey = `{MASK}`;")),
            ("f('ftp://u:p@h/', 'é')", format!("f('ftp://u:{MASK}@h/', 'é')")),
            ("it's \"fine", "it's \"fine".to_owned()),
            ("password: '', token: null", "password: '', token: null".to_owned()),
            ("DBPASS: 'it\\'s', n: 12, pin1: 5", format!("DBPASS: '{MASK}', n: 12, pin1: 5")),
            ("['--token', 't', 'x', '--all', 'y']", format!("['--token', '{MASK}', 'x', '--all', 'y']")),
            ("dbPassword: 1234, port: 5432", format!("dbPassword: {MASK}, port: 5432")),
        ] {
            assert_eq!(masked_source(line), shown);
        }
    }

    #[test]
    fn environments_in_scripts_show_only_harmless_variables() {
        let script = "define({\n  env: {\n    REGION: 'eu',\n    \"TZ\": \"UTC\", PORT: 8080,\n    A: `x\ny`\n  },\n  at: 'x'\n});";
        let shown = format!(
            "define({{\n  env: {{\n    REGION: '{MASK}',\n    \"TZ\": \"UTC\", PORT: {MASK},\n    A: `{MASK}\n`\n  }},\n  at: 'x'\n}});"
        );
        assert_eq!(masked_source(script), shown);
    }

    #[test]
    fn a_mask_that_comes_back_leaves_the_value_as_it_is() {
        let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let stored = texts(&[("password", "p"), ("someKey", "k"), ("url", "ftp://u:p@h/"), ("day", "1")]);
        let url = format!("ftp://u:{MASK}@h/");
        let mut given = texts(&[("password", MASK), ("someKey", MASK), ("url", &url), ("day", "2")]);
        unmask(&mut given, &stored);
        assert_eq!(given, texts(&[("password", "p"), ("someKey", "k"), ("url", "ftp://u:p@h/"), ("day", "2")]));
        let other = format!("ftp://v:{MASK}@h/");
        let mut another = texts(&[("password", "new"), ("token", MASK), ("url", &other)]);
        unmask(&mut another, &stored);
        assert_eq!(another, texts(&[("password", "new"), ("token", MASK), ("url", &other)]));
    }

    #[test]
    fn a_mask_is_found_wherever_it_stands() {
        let first = |value: Value| first_mask(value.as_object().expect("an object"));
        assert_eq!(first(json!({"a": 1, "b": {"c": ["x", MASK]}})), Some("b.c.1".to_owned()));
        assert_eq!(first(json!({"url": format!("ftp://u:{MASK}@h/")})), Some("url".to_owned()));
        assert_eq!(first(json!({"a": "•••", "b": [null, {}]})), None);
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for text in ["a=b", "mail me@example.com", "12:30", "s3://bucket/a@b", "for i in 1 2; do echo $i; done"] {
            assert_eq!(masked_text(text), text);
        }
    }
}
