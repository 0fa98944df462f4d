//! Tokens of machines: shown once, and stored as digests.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The beginning of every token, by which people and scanners of source code recognise one.
const PREFIX: &str = "kelos_";
/// Bytes of the secret part.
const SECRET: usize = 32;
/// Letters of the public part.
const ID: usize = 8;

/// The public part of a token, by which it is listed and revoked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(String);

impl TokenId {
    /// The id that a text is, if it can be one.
    #[must_use]
    pub fn read(text: &str) -> Option<TokenId> {
        let is_id = text.len() == ID && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        is_id.then(|| TokenId(text.to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// A token: `kelos_ID_SECRET`. It is never printed by mistake, because it can't be formatted.
pub struct Token {
    id: TokenId,
    text: String,
}

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// When the machine has no randomness.
    pub fn draw() -> Result<Token, getrandom::Error> {
        let (mut secret, mut id) = ([0; SECRET], [0; ID]);
        getrandom::fill(&mut secret)?;
        getrandom::fill(&mut id)?;
        Ok(Token::of_bytes(&secret, &id))
    }

    /// The token with this secret, whose id has the first of these bytes as letters.
    pub(crate) fn of_bytes(secret: &[u8; SECRET], id: &[u8]) -> Token {
        let letter = |byte: &u8| char::from(b"0123456789abcdefghjkmnpqrstvwxyz"[usize::from(*byte & 31)]);
        let id = TokenId(id.iter().take(ID).map(letter).collect());
        let text = format!("{PREFIX}{id}_{}", URL_SAFE_NO_PAD.encode(secret));
        Token { id, text }
    }

    /// The token that a text is, if it has the form of one.
    #[must_use]
    pub fn read(text: &str) -> Option<Token> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = TokenId::read(id)?;
        let is_secret = URL_SAFE_NO_PAD.decode(secret).is_ok_and(|bytes| bytes.len() == SECRET);
        is_secret.then(|| Token { id, text: text.to_owned() })
    }

    /// Its public part.
    #[must_use]
    pub fn id(&self) -> &TokenId {
        &self.id
    }

    /// The whole token, for the one who asked for it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Its digest, which is stored. It needs no salt and no slow hash: the secret part has 256 random bits.
    #[must_use]
    pub fn digest(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.text.as_bytes()))
    }

    /// Whether a stored digest is that of this token; takes as long wherever they differ.
    #[must_use]
    pub fn has_digest(&self, digest: &str) -> bool {
        same(self.digest().as_bytes(), digest.as_bytes())
    }
}

/// Whether two texts are the same; takes as long wherever two of one length differ.
#[must_use]
pub fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

/// A new id of a session or a visit.
pub(crate) fn draw_id() -> Result<String, getrandom::Error> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)?;
    Ok(URL_SAFE_NO_PAD.encode(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_and_known_by_its_digest() {
        let token = Token::draw().expect("a token");
        let read = Token::read(token.reveal()).expect("a token");
        assert_eq!(read.id(), token.id());
        assert!(read.has_digest(&token.digest()));
        assert!(!Token::draw().expect("another").has_digest(&token.digest()));
    }

    #[test]
    fn other_texts_are_no_tokens() {
        let whole = Token::draw().expect("a token").reveal().to_owned();
        for text in ["", "kelos_", "kelos_abcdefgh_", "kelos_ABCDEFGH_x", &whole[..whole.len() - 1], &whole[6..]] {
            assert!(Token::read(text).is_none(), "{text}");
        }
    }
}
