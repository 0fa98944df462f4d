//! The form of a block: column by column, as differences, compressed. Slots of a schedule differ by little, so most differences are zeros.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;
use kelos_model::time::moment_of_millis;
use kelos_model::{BackfillId, Slot, SlotKey, SlotState};
use kelos_store::adapter::cursor::{beyond_time, kind, order_time, whole_key};
use kelos_store::adapter::{StoredForm, stored};

use super::super::fault::Fault;
use super::PackedSlot;

/// The first byte of a block. Never change what one stands for: old databases hold them.
const FORM: u8 = 2;
/// The first form: slots of schedules' times alone, without a backfill and without anything collected.
const FORM_OF_TIMES: u8 = 1;
/// A block that says that it has more is damaged.
const MOST: u64 = 100_000;
/// The most bytes of the texts of a slot before they are compressed: one with longer texts stays in a row.
const LONGEST: u64 = 1 << 10;

/// The columns that are numbers, and those that are texts.
const NUMBERS: usize = 13;
const TEXTS: usize = 4;
/// The same in the first form.
const NUMBERS_OF_TIMES: usize = 11;
const TEXTS_OF_TIMES: usize = 1;

/// The texts of a slot: the executor's id, the rest of the key, what it has collected, and its part in a flow.
type Texts<T> = [Option<T>; TEXTS];

/// The bytes of slots, which are in the order of a block.
pub(super) fn encode(slots: &[PackedSlot]) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::new();
    write_number(&mut text, slots.len() as u64);
    let backfills = backfills(slots);
    write_number(&mut text, backfills.len() as u64);
    for backfill in &backfills {
        write_number(&mut text, backfill.as_str().len() as u64);
        text.extend(backfill.as_str().as_bytes());
    }
    let rows: Vec<_> = slots.iter().map(|slot| numbers(slot, &backfills)).collect();
    for column in 0..NUMBERS {
        let (mut before, mut step) = (0_i64, 0_i64);
        for row in &rows {
            let difference = row[column].wrapping_sub(before);
            // Times are evenly apart, and positions in the log nearly so.
            let written = if is_regular(column) { difference.wrapping_sub(step) } else { difference };
            write_number(&mut text, zigzag(written));
            (before, step) = (row[column], difference);
        }
    }
    let texts = slots.iter().map(texts).collect::<Result<Vec<_>, _>>()?;
    for column in 0..TEXTS {
        for row in &texts {
            write_number(&mut text, row[column].as_ref().map_or(0, |text| text.len() as u64 + 1));
        }
        for one in texts.iter().filter_map(|row| row[column].as_ref()) {
            text.extend(one.as_bytes());
        }
    }
    let mut encoder = DeflateEncoder::new(vec![FORM], Compression::default());
    let written = encoder.write_all(&text).and_then(|()| encoder.finish());
    written.map_err(|error| Fault::Nonsense(error.to_string()))
}

/// The backfills of slots, each once.
pub(super) fn backfills(slots: &[PackedSlot]) -> Vec<&BackfillId> {
    let mut found: Vec<_> = slots.iter().filter_map(|one| one.slot.backfill.as_ref()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a slot can be in a block: it has succeeded by a run of its own, nothing of it is live, its texts are short, and it was not done
/// again because an outcome was unknown, which is too rare for a column.
pub(super) fn fits(slot: &PackedSlot) -> Result<bool, Fault> {
    let PackedSlot { key, slot: Slot { state, last_run, run_alive, due, held, again, .. }, .. } = slot;
    let is_done = !run_alive && due.is_none() && held.is_empty() && *again == 0 && key.step().is_none();
    // One that was opened again is told from a new one by its runs.
    if *state != SlotState::Succeeded || *last_run == 0 || !is_done {
        return Ok(false);
    }
    let length = texts(slot)?.iter().flatten().map(|text| text.len() as u64).sum::<u64>();
    Ok(length < LONGEST)
}

/// The slots of a block.
pub(super) fn decode(body: &[u8]) -> Result<Vec<(SlotKey, Slot)>, Fault> {
    read_all(body).ok_or_else(|| Fault::Damaged("a block of slots can't be read".to_owned()))
}

fn read_all(body: &[u8]) -> Option<Vec<(SlotKey, Slot)>> {
    let (form, packed) = body.split_first()?;
    let (columns, columns_of_text) = match *form {
        FORM => (NUMBERS, TEXTS),
        FORM_OF_TIMES => (NUMBERS_OF_TIMES, TEXTS_OF_TIMES),
        _ => return None,
    };
    let mut text = Vec::new();
    DeflateDecoder::new(packed).take(MOST * LONGEST).read_to_end(&mut text).ok()?;
    let mut rest = text.as_slice();
    let count = read_count(&mut rest)?;
    let backfills = if *form == FORM { read_backfills(&mut rest)? } else { Vec::new() };
    let mut rows = vec![[0_i64; NUMBERS]; count];
    for column in 0..columns {
        let (mut before, mut step) = (0_i64, 0_i64);
        for row in &mut rows {
            let read = unzigzag(read_number(&mut rest)?);
            let difference = if is_regular(column) { read.wrapping_add(step) } else { read };
            row[column] = before.wrapping_add(difference);
            (before, step) = (row[column], difference);
        }
    }
    let mut texts: Vec<Texts<&str>> = vec![[None; TEXTS]; count];
    for column in 0..columns_of_text {
        let sizes: Vec<u64> = (0..count).map(|_| read_number(&mut rest)).collect::<Option<_>>()?;
        for (row, size) in texts.iter_mut().zip(sizes) {
            row[column] = match size.checked_sub(1) {
                None => None,
                Some(length) => Some(read_text(&mut rest, length)?),
            };
        }
    }
    let slots = rows.iter().zip(texts).map(|(row, texts)| slot_of(row, texts, &backfills));
    let slots = slots.collect::<Option<Vec<_>>>()?;
    rest.is_empty().then_some(slots)
}

fn read_count(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(read_number(rest).filter(|count| *count <= MOST)?).ok()
}

fn read_text<'t>(rest: &mut &'t [u8], length: u64) -> Option<&'t str> {
    let (text, others) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = others;
    std::str::from_utf8(text).ok()
}

fn read_backfills(rest: &mut &[u8]) -> Option<Vec<BackfillId>> {
    let count = read_count(rest)?;
    let read = |_| {
        let length = read_number(rest)?;
        BackfillId::new(read_text(rest, length)?).ok()
    };
    (0..count).map(read).collect()
}

fn is_regular(column: usize) -> bool {
    matches!(column, 0 | 4 | 5)
}

/// No moment: it is farther from the time of any slot than a moment can be.
const NONE: i64 = i64::MIN;

fn numbers(PackedSlot { key, slot, .. }: &PackedSlot, backfills: &[&BackfillId]) -> [i64; NUMBERS] {
    let at = order_time(key);
    let from = |moment: Timestamp| moment.as_millisecond().wrapping_sub(at);
    let position = |position: u64| position.cast_signed();
    // From 1; a slot of no backfill has 0.
    let backfill = slot.backfill.as_ref().and_then(|name| backfills.binary_search(&name).ok());
    [
        at,
        from(slot.since),
        i64::from(slot.retries),
        i64::from(slot.last_run),
        position(slot.last_run_seq),
        position(slot.last_event),
        i64::from(slot.priority),
        i64::from(slot.requested),
        i64::from(slot.said),
        slot.asked_at.map_or(NONE, from),
        slot.late.map_or(NONE, from),
        kind(key),
        backfill.map_or(0, |index| index as i64 + 1),
    ]
}

fn texts(PackedSlot { key, slot, .. }: &PackedSlot) -> Result<Texts<Cow<'_, str>>, Fault> {
    fn json<T: StoredForm>(value: Option<&T>) -> Result<Option<Cow<'static, str>>, Fault> {
        Ok(value.map(stored::text).transpose()?.map(Cow::Owned))
    }
    let beyond = Some(beyond_time(key)).filter(|beyond| !beyond.is_empty());
    let id = slot.external_id.as_deref().map(Cow::Borrowed);
    Ok([id, beyond, json(slot.collected.as_deref())?, json(slot.flow.as_deref())?])
}

fn slot_of(
    numbers: &[i64; NUMBERS],
    [external_id, beyond, collected, flow]: Texts<&str>,
    backfills: &[BackfillId],
) -> Option<(SlotKey, Slot)> {
    let [
        at,
        since,
        retries,
        last_run,
        last_run_seq,
        last_event,
        priority,
        requested,
        said,
        asked_at,
        late,
        kind,
        backfill,
    ] = *numbers;
    let moment = |from: i64| moment_of_millis(at.checked_add(from)?);
    let moment_if_any = |from: i64| if from == NONE { Some(None) } else { moment(from).map(Some) };
    let slot = Slot {
        retries: u32::try_from(retries).ok()?,
        last_run: u32::try_from(last_run).ok()?,
        last_run_seq: u64::try_from(last_run_seq).ok()?,
        last_event: u64::try_from(last_event).ok()?,
        external_id: external_id.map(str::to_owned),
        priority: i32::try_from(priority).ok()?,
        backfill: match usize::try_from(backfill).ok()?.checked_sub(1) {
            None => None,
            Some(index) => Some(backfills.get(index)?.clone()),
        },
        requested: requested != 0,
        said: u32::try_from(said).ok()?,
        asked_at: moment_if_any(asked_at)?,
        late: moment_if_any(late)?,
        collected: collected.map(stored::read).transpose().ok()?.map(Box::new),
        flow: flow.map(stored::read).transpose().ok()?.map(Box::new),
        ..Slot::new(SlotState::Succeeded, moment(since)?)
    };
    let at = moment_of_millis(at)?;
    Some((whole_key(kind, Some(at), beyond.unwrap_or_default())?, slot))
}

/// Small numbers of either sign as small numbers.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Seven bits in a byte; the eighth says that more follow.
fn write_number(text: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        text.push(0x80 | (number & 0x7f) as u8);
        number >>= 7;
    }
    text.push(number as u8);
}

fn read_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for place in 0..10 {
        let (byte, others) = rest.split_first()?;
        *rest = others;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Three slots in the first form, as the program before wrote them.
#[cfg(test)]
pub(in super::super) const FIRST_FORM: [u8; 80] = [
    1, 85, 198, 49, 10, 128, 32, 24, 134, 225, 175, 95, 112, 15, 130, 160, 169, 35, 68, 103, 10, 161, 173, 35, 4, 222,
    161, 161, 75, 52, 86, 71, 112, 115, 119, 112, 247, 14, 242, 139, 136, 131, 207, 240, 242, 138, 51, 92, 250, 87,
    252, 120, 254, 20, 172, 121, 5, 50, 34, 26, 122, 76, 35, 138, 187, 3, 184, 106, 159, 181, 139, 101, 37, 228, 177,
    111, 243, 146, 179, 38,
];

#[cfg(test)]
mod tests {
    use kelos_model::slot::{PartInFlow, RunOfFlow};
    use kelos_model::{Collection, RunName};

    use super::*;

    fn moment(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    fn slot(n: u32) -> PackedSlot {
        let at = 1_760_000_000_000 + 3_600_000 * i64::from(n);
        let slot = Slot {
            last_run: 1,
            last_run_seq: 1_000 + 6 * u64::from(n),
            last_event: 1_003 + 6 * u64::from(n),
            external_id: Some(format!("{} {}", 4_000 + n, 7_919 * u64::from(n))),
            said: n.wrapping_mul(0x9e37_79b9),
            ..Slot::new(SlotState::Succeeded, moment(at + 3_600_000 + 1_000 + i64::from(n * n % 400)))
        };
        PackedSlot { workflow: 7, key: SlotKey::Time(moment(at)), slot }
    }

    fn reads_back(slots: &[PackedSlot]) {
        let read = decode(&encode(slots).unwrap()).unwrap();
        assert_eq!(read, slots.iter().map(|one| (one.key.clone(), one.slot.clone())).collect::<Vec<_>>());
    }

    #[test]
    fn a_block_reads_back() {
        for count in [0, 1, 2, 3, 256] {
            let slots: Vec<_> = (0..count).map(slot).collect();
            reads_back(&slots);
        }
    }

    #[test]
    fn what_is_rare_reads_back() {
        let mut slots: Vec<_> = (0..5).map(slot).collect();
        slots[0].key = SlotKey::Time(moment(-62_000_000_000_000));
        slots[0].slot.since = moment(4_000_000_000_000);
        slots[1].slot = Slot {
            retries: u32::MAX,
            last_run: u32::MAX,
            last_run_seq: i64::MAX.cast_unsigned(),
            last_event: i64::MAX.cast_unsigned(),
            priority: i32::MIN,
            requested: true,
            said: u32::MAX,
            asked_at: Some(moment(0)),
            late: Some(moment(1)),
            external_id: Some(String::new()),
            ..slots[1].slot.clone()
        };
        slots[2].slot.external_id = None;
        slots[3].slot.external_id = Some("ü\n\0".to_owned());
        reads_back(&slots);
    }

    #[test]
    fn slots_of_all_keys_read_back() {
        let backfill = |name: &str| Some(BackfillId::new(name).unwrap());
        let arguments = [("größe".to_owned(), "three".into())].into();
        let (since, tallies) = (moment(4), [].into());
        let collected = Collection { since, tallies, asked: None, arguments, met: true, again: false };
        let flow = PartInFlow::Run(RunOfFlow { definition: 3, ..RunOfFlow::default() });
        let mut slots: Vec<_> = (0..6).map(slot).collect();
        slots[0].key = SlotKey::Job("_".into());
        slots[1].key = SlotKey::Named(RunName::new("order-42").unwrap());
        slots[2].key = SlotKey::Moment(moment(5));
        slots[2].slot.collected = Some(Box::new(collected));
        slots[3].slot.flow = Some(Box::new(flow));
        (slots[3].slot.backfill, slots[4].slot.backfill, slots[5].slot.backfill) =
            (backfill("b2"), backfill("b1"), backfill("b2"));
        reads_back(&slots);
        assert!(slots.iter().all(|slot| fits(slot).unwrap()));
        slots[0].key = SlotKey::Job("x".repeat(1024).into());
        assert!(!fits(&slots[0]).unwrap(), "a long text stays in a row");
        slots[1].slot.again = 1;
        assert!(!fits(&slots[1]).unwrap(), "what was done again stays in a row");
    }

    #[test]
    fn a_block_of_the_first_form_is_read() {
        let slot = |n: u32| {
            let beyond = 3_600_000 * i64::from(n);
            let slot = Slot {
                last_run: 1 + n,
                last_run_seq: 10 + u64::from(n),
                last_event: 13 + u64::from(n),
                external_id: (n != 1).then(|| format!("pid {n}")),
                said: 77,
                late: (n == 2).then(|| moment(1_760_010_000_000)),
                ..Slot::new(SlotState::Succeeded, moment(1_760_004_001_000 + beyond))
            };
            (SlotKey::Time(moment(1_760_000_400_000 + beyond)), slot)
        };
        assert_eq!(decode(&FIRST_FORM).unwrap(), [slot(0), slot(1), slot(2)]);
    }

    #[test]
    fn a_slot_takes_few_bytes() {
        let slots: Vec<_> = (0..256).map(slot).collect();
        let size = encode(&slots).unwrap().len();
        assert!(size < 256 * 20, "{size} bytes for 256 slots");
        let alike = |one: PackedSlot| {
            let since = moment(one.at() + 3_601_000);
            PackedSlot { slot: Slot { said: 7, external_id: None, since, ..one.slot }, ..one }
        };
        let slots: Vec<_> = slots.into_iter().map(alike).collect();
        let size = encode(&slots).unwrap().len();
        assert!(size < 256, "{size} bytes for 256 slots that are alike");
    }

    #[test]
    fn whatever_is_broken_is_told() {
        let whole = encode(&(0..20).map(slot).collect::<Vec<_>>()).unwrap();
        decode(&[]).unwrap_err();
        decode(&[3]).unwrap_err();
        for end in 0..whole.len() {
            decode(&whole[..end]).unwrap_err();
        }
        for place in 0..whole.len() * 8 {
            let mut broken = whole.clone();
            broken[place / 8] ^= 1 << (place % 8);
            // It may be another block; its row has a check value.
            let _ = decode(&broken);
        }
        let mut more = vec![FORM];
        let mut encoder = DeflateEncoder::new(&mut more, Compression::default());
        encoder.write_all(&[0xff, 0xff, 0xff, 0xff, 0x7f]).unwrap();
        encoder.finish().unwrap();
        decode(&more).unwrap_err();
    }
}
