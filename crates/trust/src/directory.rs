//! The directory of users and tokens, as the records of one moment have it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::account::{AccountName, RecordError, TokenRecord, UserRecord, read};
use crate::grant::Grants;
use crate::password::PasswordHash;
use crate::session::Session;
use crate::token::{Token, TokenId};

/// All users and tokens, the hours in which tokens were last used, and the sessions that were ended before their time.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    users: BTreeMap<String, UserRecord>,
    tokens: BTreeMap<TokenId, TokenRecord>,
    ended: BTreeMap<String, Timestamp>,
    used: BTreeMap<TokenId, Timestamp>,
}

impl Directory {
    /// The key of the register that says that a session was ended.
    #[must_use]
    pub fn key_of_ended(session: &Session) -> String {
        format!("ended/{}", session.id)
    }

    /// The directory of registers, by their keys. A record that can't be read gives nobody access, and is reported.
    pub fn of(records: impl IntoIterator<Item = (String, Value)>) -> (Directory, Vec<RecordError>) {
        let (mut directory, mut errors) = (Directory::default(), Vec::new());
        for (key, value) in records {
            if let Err(error) = directory.take(&key, &value) {
                errors.push(error);
            }
        }
        (directory, errors)
    }

    fn take(&mut self, key: &str, value: &Value) -> Result<(), RecordError> {
        let unknown = || RecordError::Record { key: key.to_owned(), why: "it is of no known kind".to_owned() };
        match key.split_once('/') {
            Some(("user", name)) => {
                self.users.insert(AccountName::new(name)?.to_string(), read(key, value)?);
            }
            Some(("token", id)) => {
                self.tokens.insert(TokenId::read(id).ok_or_else(unknown)?, read(key, value)?);
            }
            Some(("ended", id)) => {
                self.ended.insert(id.to_owned(), read(key, value)?);
            }
            Some(("used", id)) => {
                self.used.insert(TokenId::read(id).ok_or_else(unknown)?, read(key, value)?);
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }

    /// Takes a change of one record over; none removes it.
    ///
    /// # Errors
    /// When the record can't be read. It gives nobody access then.
    pub fn change(&mut self, key: &str, value: Option<&Value>) -> Result<(), RecordError> {
        if let Some((kind, name)) = key.split_once('/') {
            let id = TokenId::read(name);
            match (kind, &id) {
                ("user", _) => drop(self.users.remove(name)),
                ("token", Some(id)) => drop(self.tokens.remove(id)),
                ("ended", _) => drop(self.ended.remove(name)),
                ("used", Some(id)) => drop(self.used.remove(id)),
                _ => {}
            }
        }
        value.map_or(Ok(()), |value| self.take(key, value))
    }

    /// The users, ascending by name.
    pub fn users(&self) -> impl Iterator<Item = (&str, &UserRecord)> {
        self.users.iter().map(|(name, user)| (name.as_str(), user))
    }

    /// The user of a name.
    #[must_use]
    pub fn user(&self, name: &str) -> Option<&UserRecord> {
        self.users.get(name)
    }

    /// The tokens, ascending by id.
    pub fn tokens(&self) -> impl Iterator<Item = (&TokenId, &TokenRecord)> {
        self.tokens.iter()
    }

    /// The key of the register that says when a token was last used.
    #[must_use]
    pub fn key_of_use(id: &TokenId) -> String {
        format!("used/{id}")
    }

    /// When a token was last used, as far as it is recorded.
    #[must_use]
    pub fn last_use(&self, id: &TokenId) -> Option<Timestamp> {
        self.used.get(id).copied()
    }

    /// The token of an id, or the only one of a name.
    #[must_use]
    pub fn token(&self, name: &str) -> Option<(&TokenId, &TokenRecord)> {
        let by_id = self.tokens.iter().find(|(id, _)| id.as_str() == name);
        let mut named = self.tokens.iter().filter(|(_, token)| token.name.as_str() == name);
        by_id.or_else(|| named.next().filter(|_| named.next().is_none()))
    }

    /// The rights of a token that was shown; none if it is unknown, revoked or over, or its owner may not come in.
    #[must_use]
    pub fn admit_token(&self, shown: &Token, now: Timestamp) -> Option<(&TokenRecord, Grants)> {
        let record = self.tokens.get(shown.id())?;
        if !shown.has_digest(&record.digest) || record.is_over(now) {
            return None;
        }
        Some((record, self.grants_of(record)?))
    }

    /// The rights of a token; none if its owner may not come in.
    #[must_use]
    pub fn grants_of(&self, token: &TokenRecord) -> Option<Grants> {
        let grants = Grants::of(token.roles.clone());
        match &token.owner {
            None => Some(grants),
            Some(owner) => {
                let user = self.users.get(owner.as_str()).filter(|user| !user.disabled)?;
                Some(grants.within(&user.roles))
            }
        }
    }

    /// The user whose name and password were given. Takes as long if there is no such user.
    #[must_use]
    pub fn admit_password(&self, name: &str, password: &str) -> Option<&UserRecord> {
        let user = self.users.get(name);
        match user.and_then(|user| user.password.as_ref()) {
            Some(hash) if hash.is_of(password) => user.filter(|user| !user.disabled),
            Some(_) => None,
            None => {
                PasswordHash::waste(password);
                None
            }
        }
    }

    /// Whether a session of a user of this server still holds.
    #[must_use]
    pub fn admit_session(&self, session: &Session) -> Option<&UserRecord> {
        let user = self.users.get(&session.user)?;
        (!user.disabled && user.epoch == session.epoch && !self.has_ended(session)).then_some(user)
    }

    /// Whether a session was ended before its time.
    #[must_use]
    pub fn has_ended(&self, session: &Session) -> bool {
        self.ended.contains_key(&session.id)
    }

    /// The keys of records about ended sessions that would be over by now anyhow.
    pub fn stale(&self, now: Timestamp) -> impl Iterator<Item = String> {
        self.ended.iter().filter(move |(_, until)| **until <= now).map(|(id, _)| format!("ended/{id}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::right::Right;

    fn now() -> Timestamp {
        "2026-11-26T08:00:00Z".parse().expect("a time")
    }

    #[test]
    fn tokens_come_in_until_they_expire_and_while_their_owner_may() {
        let token = Token::draw().expect("a token");
        let record = |owner: Value, expires: Value| {
            json!({"name": "nightly", "digest": token.digest(), "roles": ["operate"], "owner": owner,
                   "madeAt": "2026-01-01T00:00:00Z", "expiresAt": expires})
        };
        let directory = |token_record: Value, disabled: bool| {
            let user = json!({"roles": ["view", "operate@a"], "disabled": disabled});
            let key = TokenRecord::key(token.id());
            let (directory, errors) = Directory::of([("user/anna".to_owned(), user), (key, token_record)]);
            assert_eq!(errors, []);
            directory
        };
        let free = directory(record(Value::Null, Value::Null), false);
        assert!(free.admit_token(&token, now()).expect("a token").1.allow(Right::Operate, None));
        let other = Token::draw().expect("another");
        assert!(free.admit_token(&other, now()).is_none());
        assert_eq!(free.token("nightly").map(|found| found.0), Some(token.id()));
        let owned = directory(record("anna".into(), Value::Null), false);
        let grants = owned.admit_token(&token, now()).expect("a token").1;
        assert!(grants.allow(Right::Operate, Some("a")) && !grants.allow(Right::Operate, Some("b")));
        assert!(directory(record("anna".into(), Value::Null), true).admit_token(&token, now()).is_none());
        assert!(directory(record("bob".into(), Value::Null), false).admit_token(&token, now()).is_none());
        let over = directory(record(Value::Null, "2026-11-26T08:00:00Z".into()), false);
        assert!(over.admit_token(&token, now()).is_none());
    }

    #[test]
    fn sessions_end_with_the_password_the_user_and_by_request() {
        let session = Session::begin("anna", 1, now()).expect("a session");
        let admits = |user: Value, ended: bool| {
            let mut records = vec![("user/anna".to_owned(), user)];
            if ended {
                records.push((Directory::key_of_ended(&session), json!(session.until)));
            }
            Directory::of(records).0.admit_session(&session).is_some()
        };
        assert!(admits(json!({"roles": [], "epoch": 1}), false));
        assert!(!admits(json!({"roles": [], "epoch": 2}), false));
        assert!(!admits(json!({"roles": [], "epoch": 1, "disabled": true}), false));
        assert!(!admits(json!({"roles": [], "epoch": 1}), true));
    }

    #[test]
    fn changes_of_records_give_the_directory_that_a_reader_of_all_records_has() {
        let (token, now) = (Token::draw().expect("a token"), json!("2026-11-26T08:00:00Z"));
        let record = json!({"name": "n", "digest": token.digest(), "roles": [], "madeAt": now});
        let (user, key) = (json!({"roles": ["view"]}), TokenRecord::key(token.id()));
        let (used, ended) = (Directory::key_of_use(token.id()), "ended/x".to_owned());
        let all = [("user/anna".to_owned(), user), (key, record), (used, now.clone()), (ended, now)];
        let mut changed = Directory::default();
        for (key, value) in &all {
            changed.change(key, Some(value)).expect("a record");
        }
        assert_eq!(format!("{changed:?}"), format!("{:?}", Directory::of(all.clone()).0));
        assert!(changed.change("user/anna", Some(&json!({"roles": ["owner"]}))).is_err());
        assert!(changed.user("anna").is_none(), "it gives nobody access");
        for (key, _) in &all {
            changed.change(key, None).expect("a removal");
        }
        assert_eq!(format!("{changed:?}"), format!("{:?}", Directory::default()));
    }

    #[test]
    fn a_record_that_cannot_be_read_gives_nobody_access_and_is_reported() {
        let records = [("user/anna", json!({"roles": ["owner"]})), ("cat/x", json!(1)), ("token/X", json!({}))];
        let (directory, errors) = Directory::of(records.map(|(key, value)| (key.to_owned(), value)));
        assert_eq!((directory.users().count(), errors.len()), (0, 3));
        assert!(errors[0].to_string().contains("failed to") || errors[0].to_string().contains("expected one of view"));
    }
}
