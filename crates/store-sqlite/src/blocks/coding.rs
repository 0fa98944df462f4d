//! The form of a block: column by column, as differences, compressed. Slots of a schedule differ by little, so most differences are zeros.

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;
use kelos_model::{Slot, SlotState};

use super::super::fault::Fault;
use super::BlockSlot;

/// The first byte of a block. Never change what it stands for: old databases hold it.
const FORM: u8 = 1;
/// A block that says that it has more is damaged.
const MOST: u64 = 100_000;
/// The most bytes of a slot before they are compressed: a longer id of an executor stays in a row.
const LONGEST: u64 = 1 << 10;

/// The columns that are numbers.
const COLUMNS: usize = 11;

/// The bytes of slots, which are in the order of their times.
pub(super) fn encode(slots: &[BlockSlot]) -> Result<Vec<u8>, Fault> {
    let mut text = Vec::new();
    write_number(&mut text, slots.len() as u64);
    let rows: Vec<[i64; COLUMNS]> = slots.iter().map(numbers).collect();
    for column in 0..COLUMNS {
        let (mut before, mut step) = (0_i64, 0_i64);
        for row in &rows {
            let difference = row[column].wrapping_sub(before);
            // Times are evenly apart, and positions in the log nearly so.
            let written = if is_regular(column) { difference.wrapping_sub(step) } else { difference };
            write_number(&mut text, zigzag(written));
            (before, step) = (row[column], difference);
        }
    }
    for BlockSlot { slot, .. } in slots {
        write_number(&mut text, slot.external_id.as_ref().map_or(0, |id| id.len() as u64 + 1));
    }
    for id in slots.iter().filter_map(|one| one.slot.external_id.as_ref()) {
        text.extend(id.as_bytes());
    }
    let mut encoder = DeflateEncoder::new(vec![FORM], Compression::default());
    let written = encoder.write_all(&text).and_then(|()| encoder.finish());
    written.map_err(|error| Fault::Nonsense(error.to_string()))
}

/// Whether a slot can be in a block: it has succeeded by a run of its own, and nothing else is stored of it than columns have.
pub(super) fn fits(slot: &Slot) -> bool {
    let is_plain = slot.backfill.is_none()
        && slot.collected.is_none()
        && slot.held.is_empty()
        && slot.flow.is_none()
        && slot.due.is_none()
        && !slot.run_alive;
    let is_short = slot.external_id.as_ref().is_none_or(|id| (id.len() as u64) < LONGEST / 2);
    // One that was opened again is told from a new one by its runs.
    slot.state == SlotState::Succeeded && slot.last_run > 0 && is_plain && is_short
}

/// The slots of a block.
pub(super) fn decode(body: &[u8]) -> Result<Vec<BlockSlot>, Fault> {
    read_all(body).ok_or_else(|| Fault::Damaged("a block of slots can't be read".to_owned()))
}

fn read_all(body: &[u8]) -> Option<Vec<BlockSlot>> {
    let (form, packed) = body.split_first()?;
    if *form != FORM {
        return None;
    }
    let mut text = Vec::new();
    DeflateDecoder::new(packed).take(MOST * LONGEST).read_to_end(&mut text).ok()?;
    let mut rest = text.as_slice();
    let count = usize::try_from(read_number(&mut rest).filter(|count| *count <= MOST)?).ok()?;
    let mut rows = vec![[0_i64; COLUMNS]; count];
    for column in 0..COLUMNS {
        let (mut before, mut step) = (0_i64, 0_i64);
        for row in &mut rows {
            let read = unzigzag(read_number(&mut rest)?);
            let difference = if is_regular(column) { read.wrapping_add(step) } else { read };
            row[column] = before.wrapping_add(difference);
            (before, step) = (row[column], difference);
        }
    }
    let sizes: Vec<u64> = (0..count).map(|_| read_number(&mut rest)).collect::<Option<_>>()?;
    let slots = rows.iter().zip(sizes).map(|(row, size)| {
        let id = match usize::try_from(size).ok()?.checked_sub(1) {
            None => None,
            Some(length) => {
                let (id, others) = rest.split_at_checked(length)?;
                rest = others;
                Some(String::from_utf8(id.to_vec()).ok()?)
            }
        };
        slot_of(row, id)
    });
    let slots = slots.collect::<Option<Vec<_>>>()?;
    rest.is_empty().then_some(slots)
}

fn is_regular(column: usize) -> bool {
    matches!(column, 0 | 4 | 5)
}

/// No moment: it is farther from the time of any slot than a moment can be.
const NONE: i64 = i64::MIN;

fn numbers(BlockSlot { at, slot }: &BlockSlot) -> [i64; COLUMNS] {
    let from = |moment: Timestamp| moment.as_millisecond().wrapping_sub(*at);
    let position = |position: u64| position.cast_signed();
    [
        *at,
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
    ]
}

fn slot_of(numbers: &[i64; COLUMNS], external_id: Option<String>) -> Option<BlockSlot> {
    let [at, since, retries, last_run, last_run_seq, last_event, priority, requested, said, asked_at, late] = *numbers;
    let moment = |from: i64| Timestamp::from_millisecond(at.checked_add(from)?).ok();
    let moment_if_any = |from: i64| if from == NONE { Some(None) } else { moment(from).map(Some) };
    let slot = Slot {
        retries: u32::try_from(retries).ok()?,
        last_run: u32::try_from(last_run).ok()?,
        last_run_seq: u64::try_from(last_run_seq).ok()?,
        last_event: u64::try_from(last_event).ok()?,
        external_id,
        priority: i32::try_from(priority).ok()?,
        requested: requested != 0,
        said: u32::try_from(said).ok()?,
        asked_at: moment_if_any(asked_at)?,
        late: moment_if_any(late)?,
        ..Slot::new(SlotState::Succeeded, moment(since)?)
    };
    Some(BlockSlot { at, slot })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).unwrap()
    }

    fn slot(n: u32) -> BlockSlot {
        let at = 1_760_000_000_000 + 3_600_000 * i64::from(n);
        let slot = Slot {
            last_run: 1,
            last_run_seq: 1_000 + 6 * u64::from(n),
            last_event: 1_003 + 6 * u64::from(n),
            external_id: Some(format!("{} {}", 4_000 + n, 7_919 * u64::from(n))),
            said: n.wrapping_mul(0x9e37_79b9),
            ..Slot::new(SlotState::Succeeded, moment(at + 3_600_000 + 1_000 + i64::from(n * n % 400)))
        };
        BlockSlot { at, slot }
    }

    #[test]
    fn a_block_reads_back() {
        for count in [0, 1, 2, 3, 256] {
            let slots: Vec<_> = (0..count).map(slot).collect();
            assert_eq!(decode(&encode(&slots).unwrap()).unwrap(), slots);
        }
    }

    #[test]
    fn what_is_rare_reads_back() {
        let mut slots: Vec<_> = (0..5).map(slot).collect();
        slots[0].at = -62_000_000_000_000;
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
        assert_eq!(decode(&encode(&slots).unwrap()).unwrap(), slots);
    }

    #[test]
    fn a_slot_takes_few_bytes() {
        let slots: Vec<_> = (0..256).map(slot).collect();
        let size = encode(&slots).unwrap().len();
        assert!(size < 256 * 20, "{size} bytes for 256 slots");
        let alike = |one: BlockSlot| {
            let since = moment(one.at + 3_601_000);
            BlockSlot { slot: Slot { said: 7, external_id: None, since, ..one.slot }, ..one }
        };
        let slots: Vec<_> = slots.into_iter().map(alike).collect();
        let size = encode(&slots).unwrap().len();
        assert!(size < 256, "{size} bytes for 256 slots that are alike");
    }

    #[test]
    fn whatever_is_broken_is_told() {
        let whole = encode(&(0..20).map(slot).collect::<Vec<_>>()).unwrap();
        decode(&[]).unwrap_err();
        decode(&[2]).unwrap_err();
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
