//! What looks like a secret is not shown: the definition of a job is for everybody who may see the page.

use serde_json::{Map, Value};

/// What is shown in the place of a secret.
pub(super) const MASK: &str = "••••••";

/// Parts of names whose values are secrets.
const SECRET: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "cookie",
    "signature",
    "sessionid",
];

/// The same value with everything masked that looks like a secret, by its name or by its form.
pub(super) fn masked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(masked_fields(fields)),
        Value::Array(items) => Value::Array(masked_items(items)),
        Value::String(text) => Value::String(masked_text(text)),
        other => other.clone(),
    }
}

/// The same for the fields of an object.
pub(super) fn masked_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let masked = |(name, value): (&String, &Value)| {
        let hidden = is_secret(name) && !value.is_null();
        (name.clone(), if hidden { MASK.into() } else { masked(value) })
    };
    fields.iter().map(masked).collect()
}

/// `--password VALUE` hides the value, as the argument after a name that is one of a secret.
fn masked_items(items: &[Value]) -> Vec<Value> {
    let names_secret = |item: &Value| {
        item.as_str().is_some_and(|text| text.starts_with('-') && !text.contains(['=', ' ']) && is_secret(text))
    };
    let before = std::iter::once(None).chain(items.iter().map(Some));
    let hidden = |before: Option<&Value>| before.is_some_and(names_secret);
    items.iter().zip(before).map(|(item, before)| if hidden(before) { MASK.into() } else { masked(item) }).collect()
}

/// Whether a value under such a name is a secret.
fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    SECRET.iter().any(|part| plain.contains(part)) || plain == "pwd" || plain == "auth"
}

/// A text without the passwords of its URIs and without the values of its assignments to secrets.
pub(super) fn masked_text(text: &str) -> String {
    if !text.contains(['=', '@', ':']) {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut rest = text;
    while let Some(end) = rest.find(char::is_whitespace).map(|at| at + 1).or((!rest.is_empty()).then_some(rest.len())) {
        let Some((word, after)) = rest.split_at_checked(end) else { break };
        // A header: all that follows its name belongs to it.
        if word.trim_end().strip_suffix(':').is_some_and(is_secret) && !after.is_empty() {
            return shown + word + MASK;
        }
        shown += &masked_word(word);
        rest = after;
    }
    shown + rest
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

/// `name=value&` of an address.
fn masked_parameter(part: &str) -> String {
    let (pair, separator) = part.split_at(part.trim_end_matches(['?', '&', ';']).len());
    match pair.split_once('=').filter(|(name, _)| is_secret(name)) {
        Some((name, _)) => format!("{name}={MASK}{separator}"),
        None => part.to_owned(),
    }
}

/// `scheme://user:password@host` without the password.
fn without_user(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let authority = rest.find('/').unwrap_or(rest.len());
    let Some(at) = rest[..authority].rfind('@') else { return word.to_owned() };
    match rest[..at].split_once(':') {
        Some((user, _)) => format!("{scheme}://{user}:{MASK}{}", &rest[at..]),
        None => word.to_owned(),
    }
}

/// A line of a script without the texts that are assigned to names of secrets.
pub(super) fn masked_line(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(open) = rest.find(['\'', '"', '`']) {
        let (before, quoted) = rest.split_at(open);
        let quote = &quoted[..1];
        let Some(length) = quoted[1..].find(quote) else { break };
        let (inside, after) = (&quoted[1..=length], &quoted[length + 2..]);
        shown.push_str(before);
        let name = before.trim_end().strip_suffix([':', '=']).map(|_| named(&shown));
        let hidden = name.is_some_and(|name| is_secret(&name)) && !inside.is_empty();
        shown = shown + quote + &(if hidden { MASK.to_owned() } else { masked_text(inside) }) + quote;
        rest = after;
    }
    shown + rest
}

/// The name before the `:` or `=` at the end of a text.
fn named(text: &str) -> String {
    let text = text.trim_end().trim_end_matches([':', '=']).trim_end().trim_end_matches(['\'', '"', '`']);
    let start = text.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).map_or(0, |at| at + 1);
    text.get(start..).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_under_names_of_secrets_are_hidden_however_deep() {
        let settings = json!({
            "env": { "DB_PASSWORD": "hunter2", "API_KEY": "k", "HOME": "/h", "TOKENS": ["a"] },
            "headers": { "Authorization": "Bearer x", "Accept": "*/*" },
            "oozie.wf.application.path": "/app", "secretKey": 7, "password": null,
        });
        let shown = json!({
            "env": { "DB_PASSWORD": MASK, "API_KEY": MASK, "HOME": "/h", "TOKENS": MASK },
            "headers": { "Authorization": MASK, "Accept": "*/*" },
            "oozie.wf.application.path": "/app", "secretKey": MASK, "password": null,
        });
        assert_eq!(masked(&settings), shown);
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
        ] {
            assert_eq!(masked_line(line), shown);
        }
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for text in ["a=b", "mail me@example.com", "12:30", "s3://bucket/a@b", "for i in 1 2; do echo $i; done"] {
            assert_eq!(masked_text(text), text);
        }
    }
}
