//! Slots that are about days, named by their day: in a zone other than UTC their times in UTC have another date.

use jiff::Timestamp;
use kelos_model::time::Zone;
use kelos_wire::{KeyDto, ScheduleDto, SlotNameDto, WorkflowDetailDto};

/// The zone of a calendar whose periods are days or longer; none of another schedule, and none for UTC, whose times have the right date.
pub(crate) fn zone(schedule: &ScheduleDto) -> Option<Zone> {
    let period = schedule.period.as_ref()?;
    let is_of_days = matches!(period.as_str(), "daily" | "weekly" | "monthly" | "business" | "dates");
    let zone = schedule.zone.as_deref().filter(|name| is_of_days && *name != "UTC")?;
    Zone::parse(zone).ok()
}

/// The day of a zone that begins at a moment; none where none does.
pub(crate) fn day(zone: &Zone, at: Timestamp) -> Option<String> {
    let local = at.to_zoned(zone.rules().clone());
    let begins = local.start_of_day().is_ok_and(|start| start.timestamp() == at);
    begins.then(|| local.date().to_string())
}

/// The key of a slot as a list shows it: a day, where it is named by one.
pub(crate) fn key(zone: Option<&Zone>, key: &KeyDto) -> String {
    let day = zone.zip(key.time.filter(|_| key.key.is_none())).and_then(|(zone, at)| day(zone, at.0));
    day.unwrap_or_else(|| key.to_string())
}

/// The name of a slot of a workflow, with its day before its time where it is named by one.
pub(crate) fn name(workflow: &WorkflowDetailDto, slot: &SlotNameDto) -> String {
    let shown = key(zone(&workflow.summary.schedule).as_ref(), &slot.key);
    let exact = slot.key.to_string();
    if shown == exact { slot.to_string() } else { format!("{}@{shown} ({exact})", slot.workflow) }
}

#[cfg(test)]
mod tests {
    use kelos_wire::Instant;

    use super::*;

    fn schedule(period: &'static str, zone: &str) -> ScheduleDto {
        ScheduleDto { period: Some(period.into()), zone: Some(zone.to_owned()), ..ScheduleDto::default() }
    }

    #[test]
    fn a_day_is_named_by_its_date_in_the_zone_of_the_calendar() {
        let time = |text: &str| KeyDto {
            time: Some(Instant(kelos_model::time::parse_instant(text).expect("a time"))),
            ..KeyDto::default()
        };
        let shown =
            |period: &'static str, name: &str, text: &str| key(zone(&schedule(period, name)).as_ref(), &time(text));
        assert_eq!(shown("daily", "Europe/Berlin", "2026-10-14T22:00Z"), "2026-10-15");
        assert_eq!(
            shown("daily", "Europe/Berlin", "2026-10-25T23:00Z"),
            "2026-10-26",
            "after the clocks were put back"
        );
        assert_eq!(shown("monthly", "Europe/Berlin", "2026-09-30T22:00Z"), "2026-10-01");
        assert_eq!(shown("daily", "UTC", "2026-10-15T00:00Z"), "2026-10-15T00:00Z");
        assert_eq!(shown("hourly", "Europe/Berlin", "2026-10-14T22:00Z"), "2026-10-14T22:00Z");
        // A moment that is no slot of the calendar, such as that of a removed definition.
        assert_eq!(shown("daily", "Europe/Berlin", "2026-10-14T21:00Z"), "2026-10-14T21:00Z");
    }
}
