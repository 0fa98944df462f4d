//! Visits to a provider in this process, which signs with keys of its own, and lies in each way that a provider or somebody in its place may.

mod played;

use jiff::{SignedDuration, Timestamp};
use kelos_openid::OpenId;
use kelos_tls::Trust;
use kelos_trust::{
    OpenIdSettings, Person, Provider, ProviderAnswer, ProviderError, ProviderVisit, SessionKey, VisitSecrets,
};
use serde_json::{Value, json};
use url::Url;

use self::played::{Played, Signature, Token};

fn now() -> Timestamp {
    "2026-11-26T08:00:00Z".parse().unwrap()
}

fn settings(played: &Played, changes: Value) -> OpenIdSettings {
    let mut settings = json!({"issuer": played.issuer(), "clientId": "kelos",                               "publicAddress": "http://localhost:7437"});
    for (name, value) in changes.as_object().unwrap() {
        settings[name] = value.clone();
    }
    serde_json::from_value(settings).unwrap()
}

fn provider(played: &Played) -> OpenId {
    OpenId::new(settings(played, json!({})), Some(Played::SECRET.to_owned()), &Trust::default()).unwrap()
}

fn secrets() -> VisitSecrets {
    SessionKey::draw().unwrap().secrets_of(&ProviderVisit::begin("/ui", now()).unwrap())
}

/// A visit from its beginning to its end, with a token that is changed before the provider signs it.
async fn visit(played: &Played, provider: &OpenId, change: impl FnOnce(&mut Token)) -> Result<Person, ProviderError> {
    let secrets = secrets();
    let entrance = provider.entrance(&secrets, now()).await?;
    let answer = played.sign_in(&entrance, now(), change);
    provider.person(&secrets, &answer, now()).await
}

async fn refusal(played: &Played, change: impl FnOnce(&mut Token)) -> String {
    match visit(played, &provider(played), change).await {
        Err(ProviderError::Refused(why)) => why,
        other => panic!("expected a refusal: {other:?}"),
    }
}

#[tokio::test]
async fn a_person_comes_in_with_name_and_groups() {
    let played = Played::start();
    let provider = provider(&played);
    let secrets = secrets();
    let entrance = Url::parse(&provider.entrance(&secrets, now()).await.unwrap()).unwrap();
    let asked = |name: &str| entrance.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
    assert_eq!(asked("response_type"), "code");
    assert_eq!(asked("scope"), "openid profile email");
    assert_eq!(asked("redirect_uri"), "http://localhost:7437/ui/sign-in/openid/callback");
    assert_eq!(asked("code_challenge_method"), "S256");
    assert!(!entrance.as_str().contains(&secrets.verifier));
    let person = visit(&played, &provider, |token| token.claims["groups"] = json!(["data", "all"])).await.unwrap();
    assert_eq!(person, Person { name: "anna".to_owned(), groups: vec!["data".to_owned(), "all".to_owned()] });
    assert_eq!(visit(&played, &provider, |_| {}).await.unwrap().groups, Vec::<String>::new());
}

#[tokio::test]
async fn a_token_that_is_signed_in_another_way_is_refused() {
    let played = Played::start();
    let told = refusal(&played, |token| token.signature = Signature::Missing).await;
    assert_eq!(told, "the ID token is signed by \"none\", expected RS256 or ES256");
    let told = refusal(&played, |token| token.signature = Signature::PublicKeyAsSecret).await;
    assert_eq!(told, "the ID token is signed by \"HS256\", expected RS256 or ES256");
    let told = refusal(&played, |token| token.signature = Signature::OfKey("stranger")).await;
    assert_eq!(told, "the ID token is signed by a key that the provider does not publish");
    let told = refusal(&played, |token| token.signature = Signature::OfStrangerAs("first")).await;
    assert_eq!(told, "the signature of the ID token is wrong");
    let told = refusal(&played, |token| token.header["crit"] = json!(["exp"])).await;
    assert_eq!(told, "the ID token asks for extensions (\"crit\"), expected none");
    let told = refusal(&played, |token| token.signature = Signature::NoToken).await;
    assert_eq!(told, "the ID token is no signed token");
}

#[tokio::test]
async fn claims_for_somebody_else_or_of_another_time_are_refused() {
    let played = Played::start();
    let at = |seconds: i64| json!(now().as_second() + seconds);
    for (claim, value, why) in [
        ("nonce", json!("another"), "the ID token belongs to another sign-in (\"nonce\")"),
        ("nonce", Value::Null, "the ID token belongs to another sign-in (\"nonce\")"),
        ("aud", json!("wiki"), "the ID token is for another client than \"kelos\""),
        ("aud", json!(["wiki", "kelos"]), "the ID token is for another client than \"kelos\""),
        ("aud", Value::Null, "the ID token is for another client than \"kelos\""),
        ("azp", json!("wiki"), "the ID token is for another client than \"kelos\""),
        ("iss", json!("https://evil.example"), "the ID token is of the issuer \"https://evil.example\""),
        ("exp", at(-60), "the ID token has expired"),
        ("exp", Value::Null, "the ID token has no end"),
        ("iat", at(61), "the ID token is of the future"),
        ("iat", Value::Null, "the ID token does not say when it was issued"),
        ("nbf", at(61), "the ID token is of the future"),
        ("sub", json!(""), "the ID token has no subject"),
        ("preferred_username", json!(7), "the claim \"preferred_username\" is no text"),
        ("preferred_username", Value::Null, "the provider does not tell your name"),
        ("groups", json!([7]), "the claim \"groups\" is no list of texts"),
        ("groups", json!({"a": 1}), "the claim \"groups\" is no list of texts"),
    ] {
        let told = refusal(&played, |token| match value.clone() {
            Value::Null => drop(token.claims.as_object_mut().unwrap().remove(claim)),
            value => token.claims[claim] = value,
        });
        let told = told.await;
        assert!(told.starts_with(why), "{claim}: {told}");
    }
    for (claim, value) in [("exp", at(-59)), ("iat", at(60)), ("aud", json!(["kelos"])), ("azp", json!("kelos"))] {
        visit(&played, &provider(&played), |token| token.claims[claim] = value).await.unwrap();
    }
}

#[tokio::test]
async fn a_code_counts_once_and_for_its_visit_alone() {
    let played = Played::start();
    let (provider, secrets) = (provider(&played), secrets());
    let entrance = provider.entrance(&secrets, now()).await.unwrap();
    let answer = played.sign_in(&entrance, now(), |_| {});
    provider.person(&secrets, &answer, now()).await.unwrap();
    let again = provider.person(&secrets, &answer, now()).await.unwrap_err().to_string();
    assert!(again.starts_with("the provider does not take the code"), "{again}");
    assert!(!again.contains(answer.code.as_deref().unwrap()), "{again}");
    // A code that was stolen is used in the visit of the thief, whose verifier is another.
    let stolen = played.sign_in(&entrance, now(), |_| {});
    let other = self::secrets();
    let told = provider.person(&other, &stolen, now()).await.unwrap_err().to_string();
    assert!(told.starts_with("the provider does not take the code"), "{told}");
}

#[tokio::test]
async fn answers_without_a_code_and_of_others_are_refused() {
    let played = Played::start();
    let (provider, secrets) = (provider(&played), secrets());
    for (answer, why) in [
        (json!({}), "the provider's answer has no code"),
        (
            json!({"error": "access_denied", "error_description": "not\u{202e} you"}),
            "the provider answers \"access_denied\" (not\\u{202e} you)",
        ),
        (json!({"code": "x", "iss": "https://evil.example"}), "the answer is of another provider than"),
    ] {
        let answer: ProviderAnswer = serde_json::from_value(answer).unwrap();
        let told = provider.person(&secrets, &answer, now()).await.unwrap_err().to_string();
        assert!(told.starts_with(why), "{told}");
    }
}

#[tokio::test]
async fn new_keys_are_asked_for_when_a_token_names_one_and_once_in_a_minute_at_most() {
    let played = Played::start();
    let provider = provider(&played);
    visit(&played, &provider, |_| {}).await.unwrap();
    assert_eq!(played.asked_for("/keys"), 1);
    played.publish("second");
    let with_second = async |now: Timestamp| {
        let secrets = secrets();
        let entrance = provider.entrance(&secrets, now).await.unwrap();
        let answer = played.sign_in(&entrance, now, |token| token.signature = Signature::OfKey("second"));
        provider.person(&secrets, &answer, now).await
    };
    for _ in 0..3 {
        with_second(now() + SignedDuration::from_secs(59)).await.unwrap_err();
    }
    assert_eq!(played.asked_for("/keys"), 1);
    with_second(now() + SignedDuration::from_secs(60)).await.unwrap();
    assert_eq!(played.asked_for("/keys"), 2);
    // A key that is no longer published ends with the hour.
    played.withdraw("second");
    with_second(now() + SignedDuration::from_secs(61)).await.unwrap();
    with_second(now() + SignedDuration::from_secs(60 + 3600)).await.unwrap_err();
}

#[tokio::test]
async fn what_the_token_lacks_is_asked_of_the_provider_for_the_same_person() {
    let played = Played::start();
    let lacks = |token: &mut Token| drop(token.claims.as_object_mut().unwrap().remove("preferred_username"));
    played.tell(json!({"sub": "1", "preferred_username": "anna", "groups": ["data"]}));
    let person = visit(&played, &provider(&played), lacks).await.unwrap();
    assert_eq!((person.name.as_str(), person.groups.len()), ("anna", 1));
    // Signed claims count before others.
    let person = visit(&played, &provider(&played), |token| token.claims["preferred_username"] = json!("bob")).await;
    assert_eq!(person.unwrap().name, "bob");
    for other in
        [json!({"sub": "2", "preferred_username": "root"}), json!({"preferred_username": "root"}), json!(["x"])]
    {
        played.tell(other);
        let told = refusal(&played, lacks).await;
        assert!(told.starts_with("the provider tells"), "{told}");
    }
}

#[tokio::test]
async fn an_address_counts_as_a_name_only_if_it_is_verified() {
    let played = Played::start();
    let provider = OpenId::new(
        settings(&played, json!({"nameClaim": "email"})),
        Some(Played::SECRET.to_owned()),
        &Trust::default(),
    )
    .unwrap();
    for (verified, is_in) in [(json!(true), true), (json!(false), false), (json!("true"), false), (Value::Null, false)]
    {
        let person = visit(&played, &provider, |token| {
            token.claims["email"] = json!("anna@example.com");
            token.claims["email_verified"] = verified.clone();
        });
        let person = person.await;
        assert_eq!(person.is_ok(), is_in, "{verified}: {person:?}");
    }
}

#[tokio::test]
async fn a_provider_that_is_another_or_away_is_told() {
    let played = Played::start();
    played.document(|document| document["issuer"] = json!("https://evil.example"));
    let told = visit(&played, &provider(&played), |_| {}).await.unwrap_err().to_string();
    assert!(told.contains("it names itself \"https://evil.example\", expected \"http://127.0.0.1:"), "{told}");
    for (name, value, why) in [
        ("token_endpoint", json!("http://login.example/token"), "its \"token_endpoint\" has no TLS"),
        ("jwks_uri", json!("file:///etc/passwd"), "its \"jwks_uri\" begins with file:"),
        ("authorization_endpoint", Value::Null, "authorization_endpoint"),
    ] {
        let played = Played::start();
        played.document(|document| document[name] = value.clone());
        let told = visit(&played, &provider(&played), |_| {}).await.unwrap_err();
        assert!(matches!(told, ProviderError::Unusable(_)) && told.to_string().contains(why), "{told}");
    }
    let gone = Played::start();
    let provider = provider(&gone);
    let issuer = gone.issuer().to_owned();
    drop(gone);
    let told = provider.entrance(&secrets(), now()).await.unwrap_err().to_string();
    let start = format!("the provider can't be asked at {issuer}/.well-known/openid-configuration: ");
    assert!(told.starts_with(&start), "{told}");
}

#[tokio::test]
async fn a_wrong_secret_is_told_and_not_shown() {
    let played = Played::start();
    let wrong = Some("another secret".to_owned());
    let provider = OpenId::new(settings(&played, json!({})), wrong, &Trust::default()).unwrap();
    let told = visit(&played, &provider, |_| {}).await.unwrap_err().to_string();
    assert!(told.ends_with("it does not know this server by its \"clientId\" and \"clientSecret\""), "{told}");
    assert!(!told.contains("another secret"), "{told}");
}
