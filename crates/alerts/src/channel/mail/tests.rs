mod server;

use kelos_tls::TrustSettings;

use super::super::Protection;
use super::*;
use server::{Encryption, Mood, Server, certificate};

fn outlet(server: &Server, protection: Protection) -> MailOutlet {
    MailOutlet {
        to: ["Team <team@example.com>", "ann@example.com"].map(|to| to.parse().unwrap()).to_vec(),
        from: "kelos@example.com".parse().unwrap(),
        server: MailServer { host: "localhost".to_owned(), port: server.port, protection },
        login: None,
    }
}

async fn send(outlet: &MailOutlet, trust: &Trust) -> Result<(), SendError> {
    let notice = Notice::test("mail", Timestamp::UNIX_EPOCH, "ann");
    let details = Details { why: Some("für alle".to_owned()), ..Details::default() };
    outlet.send(&notice, &details, trust, Timestamp::UNIX_EPOCH).await
}

/// Trust in one certificate.
fn trust_in(pem: &str) -> Trust {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), pem).unwrap();
    let authorities = vec![file.path().to_owned()];
    Trust::new(TrustSettings { authorities, ..TrustSettings::default() }).unwrap()
}

#[tokio::test]
async fn a_mail_has_an_id_that_follows_from_its_notice() {
    let server = Server::start(Encryption::None, &[]);
    let outlet = outlet(&server, Protection::Plain);
    send(&outlet, &Trust::default()).await.unwrap();
    send(&outlet, &Trust::default()).await.unwrap();
    let taken = server.taken();
    assert_eq!((taken.len(), &taken[0]), (2, &taken[1]), "sent twice it is the same");
    let notice = Notice::test("mail", Timestamp::UNIX_EPOCH, "ann");
    for line in [
        "From: kelos@example.com\r\n".to_owned(),
        "To: Team <team@example.com>, ann@example.com\r\n".to_owned(),
        "Subject: ann tries the channel mail: nothing has happened\r\n".to_owned(),
        format!("Message-ID: <{}@example.com>\r\n", notice.key),
        format!("References: <{}@example.com>\r\n", notice.incident),
        "Auto-Submitted: auto-generated\r\n".to_owned(),
    ] {
        assert!(taken[0].contains(&line), "{line:?} is not in {}", taken[0]);
    }
    assert!(taken[0].is_ascii(), "{}", taken[0]);
    let to: Vec<_> = server.heard().into_iter().filter(|line| line.starts_with("RCPT")).take(2).collect();
    assert_eq!(to, ["RCPT TO:<team@example.com>", "RCPT TO:<ann@example.com>"]);
}

#[tokio::test]
async fn a_server_that_dies_gets_it_again_and_one_that_refuses_does_not() {
    let moods = [
        Mood::DiesAt("RCPT"),
        Mood::DiesAt("."),
        Mood::Says(".", "451 later"),
        Mood::Says("RCPT", "550 nobody"),
        Mood::Says(".", "554 too dull"),
        Mood::Says("MAIL", "530 who are you"),
        Mood::Says("RCPT TO:<ann", "550 nobody"),
    ];
    let server = Server::start(Encryption::None, &moods);
    let outlet = outlet(&server, Protection::Plain);
    let mut fates = Vec::new();
    for _ in moods {
        fates.push(match send(&outlet, &Trust::default()).await {
            Ok(()) => "taken",
            Err(SendError::Away(_)) => "away",
            Err(SendError::Refused(_)) => "refused",
        });
    }
    assert_eq!(fates, ["away", "away", "away", "refused", "refused", "away", "taken"]);
    assert_eq!(server.taken().len(), 1);
    let gone = MailOutlet { server: MailServer { port: 1, ..outlet.server.clone() }, ..outlet };
    let away = send(&gone, &Trust::default()).await.unwrap_err();
    assert!(matches!(&away, SendError::Away(why) if why.starts_with("send mail by localhost: ")), "{away}");
}

#[tokio::test]
async fn it_is_encrypted_before_anything_is_said_to_a_server_that_is_trusted() {
    let (pem, config) = certificate();
    let at_once = Server::start(Encryption::AtOnce(config.clone()), &[]);
    let on_request = Server::start(Encryption::OnRequest(config), &[]);
    // Cargo sets it for tests.
    let login = Some(("kelos".to_owned(), SecretSource::Env("CARGO_MANIFEST_DIR".to_owned())));
    for (server, protection) in [(&at_once, Protection::Tls), (&on_request, Protection::StartTls)] {
        let outlet = MailOutlet { login: login.clone(), ..outlet(server, protection) };
        let strange = send(&outlet, &Trust::default()).await.unwrap_err();
        assert!(matches!(&strange, SendError::Away(_)) && server.taken().is_empty(), "{strange}");
        assert!(!server.heard().iter().any(|line| line.starts_with("AUTH")), "nothing secret was said");
        send(&outlet, &trust_in(&pem)).await.unwrap();
        assert_eq!(server.taken().len(), 1);
        assert!(server.heard().iter().any(|line| line.starts_with("AUTH PLAIN")));
    }
    let plain = Server::start(Encryption::None, &[]);
    let refused = send(&outlet(&plain, Protection::StartTls), &trust_in(&pem)).await.unwrap_err();
    let words = "send mail by localhost: it does not offer STARTTLS; use smtps:// if it has a port for that";
    assert_eq!(refused, SendError::Away(words.to_owned()));
}
