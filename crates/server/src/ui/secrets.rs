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
    text.split_inclusive(char::is_whitespace).map(masked_word).collect()
}

fn masked_word(word: &str) -> String {
    let end = word.trim_end().len();
    let (word, space) = word.split_at(end);
    let assigned = word.split_once('=').filter(|(name, value)| !value.is_empty() && is_secret(last_name(name)));
    let shown = match assigned {
        Some((name, _)) => format!("{name}={MASK}"),
        None => without_user(word),
    };
    shown + space
}

/// The name in `--a-b`, `http://host/?x=1&name`.
fn last_name(text: &str) -> &str {
    text.rsplit(['&', '?', ';', ',']).next().unwrap_or(text)
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
        assert_eq!(masked_text("http://h/?a=b&access_token=x"), format!("http://h/?a=b&access_token={MASK}"));
    }

    #[test]
    fn what_is_no_secret_stays_as_it_is() {
        for text in ["a=b", "mail me@example.com", "12:30", "s3://bucket/a@b", "for i in 1 2; do echo $i; done"] {
            assert_eq!(masked_text(text), text);
        }
    }
}
