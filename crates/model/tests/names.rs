//! Names made of parts: whatever the parts are, their text reads back to them, so that no two of them collide.

use kelos_model::project::{
    DEFAULT_NAMESPACE, DEFAULT_VERSION, Member, ProjectName, dataset, dataset_named, dataset_parts,
};
use kelos_model::workflow::{Keys, Program};
use kelos_model::{SlotKey, SlotRef, WorkflowId};
use proptest::prelude::*;

/// Short texts of little more than separators, where collisions are.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a.~:@%-]{0,5}",
        1 => "[a-c0-9._~]{1,8}",
        1 => Just(DEFAULT_NAMESPACE.to_owned()),
        1 => Just(DEFAULT_VERSION.to_owned()),
        1 => "\\PC{0,6}",
    ]
}

fn project() -> impl Strategy<Value = ProjectName> {
    let parts = (part(), part(), part());
    let project = parts.prop_map(|(namespace, application, version)| ProjectName { namespace, application, version });
    project.prop_filter("parts that can't be told apart are refused", ProjectName::is_sound)
}

fn member() -> impl Strategy<Value = Member> {
    (project(), proptest::option::of(part()), part()).prop_map(|(project, kind, name)| Member { project, kind, name })
}

#[test]
fn names_of_runs_and_steps_are_read_as_people_type_them() {
    let keys = Keys::Requests(Box::new(Program { name: "p".to_owned(), kind: None }));
    let read = |text: &str| keys.read(text).map(|key| key.to_string());
    for (typed, key) in [
        ("order-42", ".order-42"),
        (".order-42", ".order-42"),
        ("42", ".42"),
        (".noon", ".noon"),
        ("order-42.pay", ".order-42.pay"),
        (".order-42.pay:3", ".order-42.pay:3"),
        (".12-34.pay", ".12-34.pay"),
        ("2026-11-21T00:00Z", "_2026-11-21T00:00:00.000Z"),
        ("2026-11-21T00:00Z.load", "._2026-11-21T00:00:00.000Z.load"),
        (".2026-11-21T00:00:00.000Z.load:3", "._2026-11-21T00:00:00.000Z.load:3"),
    ] {
        assert_eq!(read(typed).as_deref(), Ok(key), "{typed}");
        let back = keys.read(typed).and_then(|key| keys.read(&key.typed())).map(|key| key.to_string());
        assert_eq!(back.as_deref(), Ok(key), "{typed}");
    }
    for nonsense in
        ["", ".", "noon", "2026-13-01", "12-34.pay", "a b", "a.b.c", "a.pay:", "a.pay:x", "-a", &"x".repeat(201)]
    {
        assert!(read(nonsense).is_err(), "{nonsense}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_project_reads_back(project in project()) {
        prop_assert_eq!(ProjectName::read(&project.to_string()), project);
    }

    #[test]
    fn a_member_reads_back_to_the_same_parts(member in member()) {
        if let Ok(id) = member.project.member(member.kind.as_deref(), &member.name) {
            prop_assert_eq!(member.project.member_name(&id), Some(member.clone()));
            prop_assert_eq!(Member::read(&id), Some(member));
        }
    }

    #[test]
    fn a_name_without_separators_stays_as_it_was(project in project(), name in "[a-z0-9@%~_-]{1,6}", kind in "[a-z]{1,5}") {
        let version = project.version.trim_end_matches('~').to_owned();
        let project = ProjectName { version: if version.is_empty() { "1".to_owned() } else { version }, ..project };
        let id = project.member(None, &name).map(String::from);
        prop_assert_eq!(id.ok(), WorkflowId::new(&format!("{project}.{name}")).map(String::from).ok());
        let id = project.member(Some(&kind), &name).map(String::from);
        prop_assert_eq!(id.ok(), WorkflowId::new(&format!("{project}.{kind}:{name}")).map(String::from).ok());
    }

    #[test]
    fn a_dataset_reads_back(namespace in part(), name in part()) {
        let text = dataset(&namespace, &name);
        prop_assert_eq!(dataset_parts(&text), (namespace, &*name));
        prop_assert_eq!(dataset_named(&text), text);
    }

    #[test]
    fn any_text_is_some_dataset(text in part()) {
        let named = dataset_named(&text);
        prop_assert_eq!(dataset_named(&named), named);
    }

    #[test]
    fn a_slot_reads_back(workflow in part(), job in proptest::option::of(part()), millis in 0_i64..4_000_000_000_000) {
        let key = match job {
            None => SlotKey::parse(&SlotKey::Time(jiff::Timestamp::from_millisecond(millis).unwrap()).to_string()),
            Some(job) => SlotKey::parse(&format!("~{job}")),
        };
        if let (Ok(workflow), Ok(key)) = (WorkflowId::new(&workflow), key) {
            let slot = SlotRef::new(workflow, key);
            prop_assert_eq!(slot.to_string().parse::<SlotRef>(), Ok(slot));
        }
    }
}
