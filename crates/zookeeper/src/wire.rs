//! Requests and answers as bytes: numbers with the high byte first, and bytes behind their number.

use crate::Write;

/// The kinds of requests, by their numbers in the protocol.
pub(crate) mod kind {
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const DELETE: i32 = 2;
    pub(crate) const GET_DATA: i32 = 4;
    pub(crate) const SET_DATA: i32 = 5;
    pub(crate) const GET_CHILDREN: i32 = 8;
    pub(crate) const SYNC: i32 = 9;
    pub(crate) const PING: i32 = 11;
    pub(crate) const CHECK: i32 = 13;
    pub(crate) const MULTI: i32 = 14;
    pub(crate) const AUTH: i32 = 100;
    pub(crate) const CLOSE: i32 = -11;
    /// In the answer to several writes: one that was not done.
    pub(crate) const ERROR: i32 = -1;
}

/// All that can be done with a node.
const ALL: i32 = 31;
/// The bytes of the description of a node, and those before its version.
const STAT: usize = 68;
const BEFORE_VERSION: usize = 32;
/// The code of a write that was fine and undone because of another one.
const UNDONE: i32 = 0;

/// A request that is being written.
#[derive(Default)]
pub(crate) struct Request(Vec<u8>);

impl Request {
    pub(crate) fn new(number: i32, kind: i32) -> Request {
        Request::default().int(number).int(kind)
    }

    pub(crate) fn int(mut self, number: i32) -> Request {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn long(mut self, number: i64) -> Request {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub(crate) fn flag(mut self, is_set: bool) -> Request {
        self.0.push(u8::from(is_set));
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Request {
        self = self.int(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
        self.0.extend(bytes);
        self
    }

    pub(crate) fn text(self, text: &str) -> Request {
        self.bytes(text.as_bytes())
    }

    /// Adds one of several writes. Nodes that are created belong to the user, if there is one.
    pub(crate) fn write(self, write: &Write<'_>, has_user: bool) -> Request {
        let begin = |kind| self.int(kind).flag(false).int(-1);
        match write {
            Write::Check { path, version } => begin(kind::CHECK).text(path).int(*version),
            Write::Create { path, data } => {
                let (scheme, id) = if has_user { ("auth", "") } else { ("world", "anyone") };
                begin(kind::CREATE).text(path).bytes(data).int(1).int(ALL).text(scheme).text(id).int(0)
            }
            Write::Set { path, data, version } => begin(kind::SET_DATA).text(path).bytes(data).int(*version),
            Write::Delete { path } => begin(kind::DELETE).text(path).int(-1),
        }
    }

    /// Ends several writes.
    pub(crate) fn end(self) -> Request {
        self.int(-1).flag(true).int(-1)
    }

    /// The request behind the number of its bytes.
    pub(crate) fn framed(self) -> Vec<u8> {
        Request::default().bytes(&self.0).0
    }
}

/// The rest of an answer.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a>(pub(crate) &'a [u8]);

impl<'a> Answer<'a> {
    pub(crate) fn skip(self, bytes: usize) -> Option<Answer<'a>> {
        self.0.get(bytes..).map(Answer)
    }

    pub(crate) fn int(self) -> Option<(i32, Answer<'a>)> {
        let (number, rest) = self.0.split_first_chunk()?;
        Some((i32::from_be_bytes(*number), Answer(rest)))
    }

    pub(crate) fn long(self) -> Option<(i64, Answer<'a>)> {
        let (number, rest) = self.0.split_first_chunk()?;
        Some((i64::from_be_bytes(*number), Answer(rest)))
    }

    /// Bytes behind their number, which is -1 for none.
    pub(crate) fn bytes(self) -> Option<(&'a [u8], Answer<'a>)> {
        let (length, rest) = self.int()?;
        let (bytes, rest) = rest.0.split_at_checked(usize::try_from(length.max(0)).ok()?)?;
        Some((bytes, Answer(rest)))
    }

    /// The content and the version of a node.
    pub(crate) fn node(self) -> Option<(Vec<u8>, i32)> {
        let (data, stat) = self.bytes()?;
        let (version, _) = stat.skip(BEFORE_VERSION)?.int()?;
        Some((data.to_vec(), version))
    }

    /// A list of names; one that is no text is passed over.
    pub(crate) fn names(self) -> Option<Vec<String>> {
        let (number, mut rest) = self.int()?;
        let mut names = Vec::new();
        for _ in 0..number.max(0) {
            let (name, after) = rest.bytes()?;
            names.extend(std::str::from_utf8(name).ok().map(str::to_owned));
            rest = after;
        }
        names.sort();
        Some(names)
    }

    /// The first of several writes that failed, with its code; none if all were done.
    pub(crate) fn failed_write(self) -> Option<Option<(usize, i32)>> {
        let mut rest = self;
        for index in 0.. {
            let (kind, after) = rest.int()?;
            let (is_end, after) = after.0.split_first()?;
            rest = Answer(after).skip(4)?;
            if *is_end != 0 {
                break;
            }
            rest = match kind {
                kind::ERROR => match rest.int()? {
                    (UNDONE, rest) => rest,
                    (code, _) => return Some(Some((index, code))),
                },
                kind::CREATE => rest.bytes()?.1,
                kind::SET_DATA => rest.skip(STAT)?,
                kind::CHECK | kind::DELETE => rest,
                _ => return None,
            };
        }
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_make_no_sense_are_no_names() {
        let whole = Request::default().int(2).text("b").text("a").0;
        assert_eq!(Answer(&whole).names().unwrap(), ["a", "b"]);
        for length in 0..whole.len() {
            assert_eq!(Answer(&whole[..length]).names(), None, "{length}");
        }
    }

    #[test]
    fn the_write_that_failed_is_found() {
        let failed = Request::default().int(-1).flag(false).int(0).int(0).int(-1).flag(false).int(-103).int(-103);
        let failed = failed.int(-1).flag(false).int(-2).int(-2).end().0;
        assert_eq!(Answer(&failed).failed_write(), Some(Some((1, -103))));
        let done = Request::default()
            .int(kind::CHECK)
            .flag(false)
            .int(0)
            .int(kind::CREATE)
            .flag(false)
            .int(0)
            .text("/a")
            .end()
            .0;
        assert_eq!(Answer(&done).failed_write(), Some(None));
        for length in 0..done.len() {
            assert_eq!(Answer(&done[..length]).failed_write(), None, "{length}");
        }
    }
}
