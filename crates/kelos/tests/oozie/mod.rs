//! The executor of Oozie jobs: against a stand-in that fails on request, and against a real Oozie.

mod real;
mod records;
mod stub;
mod support;

use std::time::Duration;

use kelos_engine::executor::Executor as _;
use kelos_executors::OozieWaits;
use kelos_model::run::Report;
use kelos_model::{FailureCode, Outcome};
use serde_json::json;

use stub::{Mood, Stub, value_of};
use support::{Heard, WAITS, deferred, eventually, executor, executor_of, run, start, start_with, started, talking};

#[test]
fn a_job_is_submitted_started_and_watched_to_its_end() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        let id = started(heard.start(&executor, start(&stub.url(), run(1))).await);
        eventually("its start", || (stub.job().1.status == "RUNNING").then_some(())).await;
        stub.all_become("SUCCEEDED", "[]");
        assert_eq!(heard.end(&run(1)).await, Outcome::Succeeded);

        let (known, job) = stub.job();
        assert_eq!((known, job.starts), (id, 1));
        let expected = [
            ("celosWorkflowName", "wf@2013-11-26T17:23Z"),
            ("year", "2013"),
            ("second", "00"),
            ("user.name", "celos"),
            ("key", "hush"),
        ];
        for (name, value) in expected {
            assert_eq!(value_of(&job.conf, name).as_deref(), Some(value), "{name}");
        }
        assert!(stub.requests().iter().all(|request| request.contains("user.name=celos")), "{:?}", stub.requests());
        assert_eq!(heard.all().len(), 2);
    });
}

#[test]
fn a_submission_whose_answer_got_lost_is_found_and_not_made_again() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        stub.mood(Mood::HangsUp);
        let first = executor(&stub.url());
        let reason = deferred(heard.start(&first, start(&stub.url(), run(1))).await);
        assert!(reason.starts_with("failed to submit its job: hear from 127.0.0.1:"), "{reason}");
        stub.mood(Mood::Well);
        let id = started(heard.start(&first, start(&stub.url(), run(1))).await);
        assert_eq!(stub.job().0, id);
    });
}

#[test]
fn a_process_that_died_before_it_recorded_its_job_leaves_it_to_the_next_one() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        stub.mood(Mood::HangsUp);
        deferred(heard.start(&executor(&stub.url()), start(&stub.url(), run(1))).await);
        stub.mood(Mood::Well);

        let next = executor(&stub.url());
        let id = started(heard.check(&next, &run(1), None).await);
        eventually("its start", || (stub.job().1.status == "RUNNING").then_some(())).await;
        // It is asked to start it as well, in whatever order.
        assert_eq!(started(heard.start(&next, start(&stub.url(), run(1))).await), id);
        stub.all_become("SUCCEEDED", "[]");
        assert_eq!(heard.end(&run(1)).await, Outcome::Succeeded);
        assert_eq!((stub.job().0, stub.job().1.starts), (id, 1));
    });
}

#[test]
fn a_run_that_was_never_submitted_is_said_never_to_have_started() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        assert_eq!(heard.check(&executor(&stub.url()), &run(1), None).await, Report::NeverStarted);
        let looks = stub.requests().iter().filter(|request| request.contains("external-id=")).count();
        assert_eq!(looks, 2, "one may have been on its way at the first look");
    });
}

#[test]
fn a_slow_submission_is_waited_for_rather_than_made_twice() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let waits = OozieWaits { request: Duration::from_millis(50), doubt: Duration::from_secs(20), ..WAITS };
        let executor = executor_of(&stub.url(), "here", waits);
        stub.mood(Mood::Slow(Duration::from_millis(300)));
        let reason = deferred(heard.start(&executor, start(&stub.url(), run(1))).await);
        assert!(reason.ends_with(": no answer in time"), "{reason}");
        let mut reasons = Vec::new();
        let id = loop {
            match heard.start(&executor, start(&stub.url(), run(1))).await {
                Report::Started { external_id } => break external_id,
                report => reasons.push(deferred(report)),
            }
        };
        let words = format!("failed to hear from Oozie at {} whether it took the job", stub.url());
        assert!(reasons.iter().all(|reason| reason.starts_with(&words)), "{reasons:?}");
        assert_eq!(stub.job().0, id);
    });
}

#[test]
fn two_installations_share_an_oozie_without_taking_each_others_jobs() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let (here, there) = (executor(&stub.url()), executor_of(&stub.url(), "there", WAITS));
        let one = started(heard.start(&here, start(&stub.url(), run(1))).await);
        let other = started(heard.start(&there, start(&stub.url(), run(1))).await);
        assert_ne!(one, other);
        let again = started(heard.start(&here, start(&stub.url(), run(2))).await);
        assert_eq!(stub.jobs().iter().filter(|(id, _)| *id == again).count(), 1);
    });
}

#[test]
fn a_start_that_got_lost_is_repeated() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        stub.mood(Mood::RefusesStarts);
        let executor = executor(&stub.url());
        started(heard.start(&executor, start(&stub.url(), run(1))).await);
        let note = eventually("a note", || executor.note(&run(1))).await;
        let expected = "Oozie job 0000001-stub-W is submitted, and can't be started: failed to get Oozie to do it: it \
                        says E0607: Other error";
        assert_eq!(note, expected);
        stub.mood(Mood::Well);
        eventually("its start", || (stub.job().1.status == "RUNNING").then_some(())).await;
        eventually("the note to go", || executor.note(&run(1)).is_none().then_some(())).await;
        assert_eq!(heard.ends(), []);
    });
}

#[test]
fn a_job_that_oozie_will_not_start_is_given_up_and_killed() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        stub.mood(Mood::RefusesStarts);
        let executor = executor(&stub.url());
        started(heard.start(&executor, start(&stub.url(), run(1))).await);
        let Outcome::Failed { reason, .. } = heard.end(&run(1)).await else { panic!("it failed") };
        assert!(reason.contains("can't be started") && reason.contains("E0607"), "{reason}");
        eventually("its end in Oozie", || (stub.job().1.status == "KILLED").then_some(())).await;
    });
}

#[test]
fn a_page_instead_of_an_answer_is_quoted_with_what_to_do() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        stub.mood(Mood::Page("502 Bad Gateway", "<html><title>502</title><body>The upstream is away</body></html>"));
        let executor = executor(&stub.url());
        let reason = deferred(heard.start(&executor, start(&stub.url(), run(1))).await);
        let expected = format!(
            "failed to look for its job before submitting it: talk to Oozie at {}: it answers with a page instead of \
             JSON, \"502 Bad Gateway: 502 The upstream is away\"; check that the URL is the root of Oozie's web \
             service, such as http://oozie:11000/oozie, and any proxy on the way",
            stub.url()
        );
        assert_eq!(reason, expected);
        // A login page comes with success.
        stub.mood(Mood::Page("200 OK", "<!DOCTYPE html><h1>Log in</h1>"));
        let reason = deferred(heard.start(&executor, start(&stub.url(), run(1))).await);
        assert!(reason.contains("\"200 OK: Log in\""), "{reason}");
        stub.mood(Mood::Well);
        started(heard.start(&executor, start(&stub.url(), run(1))).await);
    });
}

#[test]
fn kerberos_and_redirections_are_told_of() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        stub.mood(Mood::Kerberos);
        let reason = deferred(heard.start(&executor, start(&stub.url(), run(1))).await);
        let words = "it asks for Kerberos (Negotiate), which Kelos can't do yet; expected simple authentication";
        assert!(reason.contains(words), "{reason}");
        stub.mood(Mood::Redirects("https://sso.example/login?token=secret"));
        let reason = deferred(heard.start(&executor, start(&stub.url(), run(1))).await);
        assert!(reason.contains("leads to https://sso.example/login;") && !reason.contains("secret"), "{reason}");
        assert!(stub.jobs().is_empty());
    });
}

#[test]
fn what_waiting_can_not_mend_ends_the_run_and_the_rest_is_tried_again() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        stub.mood(Mood::Refuses("E0504", "E0504: App directory [/wf] does not exist"));
        let reason = deferred(heard.start(&executor, start(&stub.url(), run(1))).await);
        let expected = "failed to submit its job: get Oozie to do it: it says E0504: App directory [/wf] does not \
                        exist; deploy the workflow's files, or correct the property oozie.wf.application.path";
        assert_eq!(reason, expected);
        stub.mood(Mood::Refuses("E0701", "E0701: XML schema error, cvc-complex-type"));
        heard.start(&executor, start(&stub.url(), run(1))).await;
        let reason = "get Oozie to do it: it says E0701: XML schema error, cvc-complex-type".to_owned();
        assert_eq!(heard.end(&run(1)).await, Outcome::refused(reason));
    });
}

#[test]
fn properties_that_are_no_texts_end_the_run_without_a_request() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let bad =
            start_with(&stub.url(), run(1), json!({"oozie.wf.application.path": "/a", "x": {"password": "hush"}}));
        heard.start(&executor(&stub.url()), bad).await;
        let Outcome::Refused { reason, .. } = heard.end(&run(1)).await else { panic!("it is refused") };
        assert_eq!(reason, "property `x` is an object, expected a text: use JSON.stringify in the script");
        assert!(stub.requests().is_empty());
    });
}

#[test]
fn an_oozie_that_is_down_loses_nothing() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        started(heard.start(&executor, start(&stub.url(), run(1))).await);
        eventually("its start", || (stub.job().1.status == "RUNNING").then_some(())).await;
        stub.down();
        let mut reason = String::new();
        while !reason.contains("refused") {
            reason = deferred(heard.start(&executor, start(&stub.url(), run(2))).await);
        }
        assert!(
            reason.starts_with("failed to look for its job before submitting it: connect to 127.0.0.1:"),
            "{reason}"
        );
        assert_eq!(heard.ends(), []);
        let words = "nothing is heard of the job, which may go on in Oozie at http://127.0.0.1:";
        eventually("a note", || executor.note(&run(1)).filter(|note| note.starts_with(words))).await;
        stub.all_become("SUCCEEDED", "[]");
        stub.up().await;
        assert_eq!(heard.end(&run(1)).await, Outcome::Succeeded);
        started(heard.start(&executor, start(&stub.url(), run(2))).await);
    });
}

#[test]
fn a_suspended_job_is_not_a_failure() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        started(heard.start(&executor, start(&stub.url(), run(1))).await);
        eventually("its start", || (stub.job().1.status == "RUNNING").then_some(())).await;
        stub.all_become("SUSPENDED", "[]");
        let note = eventually("a note", || executor.note(&run(1))).await;
        let expected = "Oozie job 0000001-stub-W is suspended in Oozie: resume or kill it there, or kill the slot";
        assert_eq!(note, expected);
        stub.all_become("SOMETHING-NEW", "[]");
        let words = "Oozie says that job 0000001-stub-W is SOMETHING-NEW, which is taken for running";
        eventually("another note", || (executor.note(&run(1))? == words).then_some(())).await;
        assert_eq!(heard.ends(), []);
        stub.all_become("SUCCEEDED", "[]");
        assert_eq!(heard.end(&run(1)).await, Outcome::Succeeded);
    });
}

#[test]
fn many_jobs_are_asked_about_in_few_requests() {
    talking(async {
        const JOBS: u32 = 120;
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        for number in 1..=JOBS {
            executor.start(start(&stub.url(), run(number)), heard.reports());
        }
        let all_run = || stub.jobs().iter().filter(|(_, job)| job.status == "RUNNING").count() == JOBS as usize;
        eventually("their starts", || all_run().then_some(())).await;
        stub.all_become("SUCCEEDED", "[]");
        eventually("their ends", || (heard.ends().len() == JOBS as usize).then_some(())).await;
        let single = stub.requests().into_iter().filter(|request| request.starts_with("GET /oozie/v1/job/")).count();
        assert_eq!(single, 0);
        let widest = stub.requests().iter().map(|request| request.matches("id%3D").count()).max();
        assert!(widest.is_some_and(|ids| ids > 10), "{widest:?}");
    });
}

#[test]
fn an_oozie_that_can_not_list_by_ids_is_asked_about_each() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        stub.mood(Mood::NoBulk);
        let executor = executor(&stub.url());
        started(heard.start(&executor, start(&stub.url(), run(1))).await);
        eventually("its start", || (stub.job().1.status == "RUNNING").then_some(())).await;
        stub.all_become("SUCCEEDED", "[]");
        assert_eq!(heard.end(&run(1)).await, Outcome::Succeeded);
    });
}

#[test]
fn a_failed_job_says_which_action_failed_and_why() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        started(heard.start(&executor, start(&stub.url(), run(1))).await);
        eventually("its start", || (stub.job().1.status == "RUNNING").then_some(())).await;
        let actions =
            r#"[{"name": "count", "status": "ERROR", "errorCode": "JA018", "errorMessage": "Output exists"}]"#;
        stub.all_become("KILLED", actions);
        let reason = "action \"count\" of Oozie job 0000001-stub-W failed: JA018: Output exists".to_owned();
        assert_eq!(
            heard.end(&run(1)).await,
            Outcome::Failed { reason, exit_status: None, code: Some(FailureCode::REPORTED) }
        );
    });
}

#[test]
fn a_job_that_oozie_has_forgotten_ended_nobody_knows_how() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        started(heard.check(&executor, &run(1), Some("0000009-stub-W")).await);
        let reason = format!(
            "Oozie at {} does not know job 0000009-stub-W any more: it was purged there, or the URL now leads to \
             another Oozie",
            stub.url()
        );
        assert_eq!(heard.end(&run(1)).await, Outcome::Unknown { reason });
    });
}

#[test]
fn a_killed_run_is_killed_in_oozie() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        let id = started(heard.start(&executor, start(&stub.url(), run(1))).await);
        executor.cancel(&run(1), Some(&id), heard.reports());
        assert_eq!(heard.end(&run(1)).await, Outcome::Killed);
        assert_eq!(stub.job().1.status, "KILLED");
        // After it has ended, and after a restart.
        let next = support::executor(&stub.url());
        let again = Heard::default();
        next.cancel(&run(1), Some(&id), again.reports());
        assert_eq!(again.end(&run(1)).await, Outcome::Killed);
        stub.all_become("SUCCEEDED", "[]");
        let late = Heard::default();
        next.cancel(&run(1), Some(&id), late.reports());
        assert_eq!(late.end(&run(1)).await, Outcome::Succeeded);
    });
}

#[test]
fn a_kill_before_the_start_was_confirmed_finds_the_job_or_knows_that_there_is_none() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        stub.mood(Mood::HangsUp);
        deferred(heard.start(&executor(&stub.url()), start(&stub.url(), run(1))).await);
        stub.mood(Mood::Well);
        let next = executor(&stub.url());
        next.cancel(&run(1), None, heard.reports());
        assert_eq!(heard.end(&run(1)).await, Outcome::Killed);
        assert_eq!(stub.job().1.status, "KILLED");
        next.cancel(&run(2), None, heard.reports());
        assert_eq!(heard.end(&run(2)).await, Outcome::Killed);
        assert_eq!(stub.job().1.starts, 0);
    });
}

#[test]
fn a_start_that_comes_after_the_kill_submits_nothing() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let executor = executor(&stub.url());
        executor.cancel(&run(1), None, heard.reports());
        executor.start(start(&stub.url(), run(1)), heard.reports());
        assert_eq!(heard.end(&run(1)).await, Outcome::Killed);
        // The next run of the slot is another one.
        started(heard.start(&executor, start(&stub.url(), run(2))).await);
        assert!(stub.job().1.external_id.contains("#2:"));
    });
}

#[test]
fn a_kill_is_tried_until_oozie_is_back() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let id = started(heard.start(&executor(&stub.url()), start(&stub.url(), run(1))).await);
        stub.down();
        let next = executor(&stub.url());
        next.cancel(&run(1), Some(&id), heard.reports());
        next.cancel(&run(2), None, heard.reports());
        // The core asks again while it hears nothing.
        next.cancel(&run(2), None, heard.reports());
        stub.up().await;
        assert_eq!(heard.end(&run(1)).await, Outcome::Killed);
        assert_eq!(heard.end(&run(2)).await, Outcome::Killed);
        assert_eq!(heard.ends().len(), 2);
    });
}

#[test]
fn nothing_that_is_said_holds_a_password() {
    talking(async {
        let (stub, heard) = (Stub::start().await, Heard::default());
        let url = stub.url().replace("http://", "http://ada:hush@");
        let executor = executor(&url);
        let moods = [Mood::Page("502 Bad Gateway", "<html>x"), Mood::Kerberos, Mood::HangsUp, Mood::Redirects("/x")];
        for mood in moods {
            stub.mood(mood);
            let reason = deferred(heard.start(&executor, start(&url, run(1))).await);
            assert!(!reason.contains("hush"), "{reason}");
        }
        stub.mood(Mood::Well);
        stub.forget_jobs();
        started(heard.check(&executor, &run(1), Some("1-W")).await);
        let Outcome::Unknown { reason } = heard.end(&run(1)).await else { panic!("it is unknown") };
        assert!(!reason.contains("hush"), "{reason}");
    });
}
