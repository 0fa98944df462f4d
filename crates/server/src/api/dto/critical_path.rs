//! Critical paths on the wire.

use kelos_explain::critical_path::{CriticalPath, Link, SlotWait, Step};
use kelos_wire::{CriticalPathDto, LinkDto, PathStepDto, WaitedDto};

use super::FromLibrary;

impl FromLibrary<CriticalPath> for CriticalPathDto {
    fn from_library(path: CriticalPath) -> CriticalPathDto {
        CriticalPathDto {
            slot: (&path.slot).into(),
            from: path.from.into(),
            until: path.until.into(),
            is_over: path.is_over,
            millis: path.millis(),
            links: path.links.iter().map(|link| LinkDto::from_library((&path, link))).collect(),
            cut: path.cut,
        }
    }
}

impl FromLibrary<(&CriticalPath, &Link)> for LinkDto {
    fn from_library((path, link): (&CriticalPath, &Link)) -> LinkDto {
        LinkDto {
            slot: (&link.slot).into(),
            state: link.state.map(|state| state.as_str().into()),
            from: link.from.into(),
            until: link.until.into(),
            millis: link.millis(),
            percent: (path.percent(link.millis()) * 10.0).round() / 10.0,
            sentence: path.sentence(link),
            opened: link.opened.clone(),
            waited: link.waited.as_ref().map(WaitedDto::from_library),
            steps: link.steps.iter().map(PathStepDto::from_library).collect(),
            besides: link.besides.clone(),
        }
    }
}

impl FromLibrary<&SlotWait> for WaitedDto {
    fn from_library(waited: &SlotWait) -> WaitedDto {
        WaitedDto { slot: (&waited.on).into(), from: waited.from.into(), until: waited.until.into() }
    }
}

impl FromLibrary<&Step> for PathStepDto {
    fn from_library(step: &Step) -> PathStepDto {
        PathStepDto {
            kind: step.kind.as_str().into(),
            from: step.from.into(),
            until: step.until.into(),
            millis: step.millis(),
            run: step.run,
            text: step.words.clone(),
        }
    }
}
