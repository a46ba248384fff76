//! Tokens do not leave the server but to those who asked for them.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use kubewright_server::{Tokens, User};
use serde_json::{Value, json};
use tracing_subscriber::fmt::MakeWriter;

use crate::host::{Caller, builder};

const CANARY: &str = "canary-token-6b1f";

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .expect("nobody panics")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("nobody panics")).into_owned()
    }
}

/// Requests with the canary wherever a token may stand, right and wrong.
async fn chatter(server: &kubewright_server::Server) -> Vec<Value> {
    let admin = Caller::admin(server);
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let mut answers = Vec::new();
    for token in [CANARY, "canary-token-6b1f-wrong", "a.canary-token-6b1f.c"] {
        let caller = Caller::bearer(server, token);
        answers.push(caller.get("/api/v1/pods").await.1);
        answers.push(caller.get("/nowhere").await.1);
    }
    admin
        .send("POST", reviews, &json!({ "spec": { "token": CANARY } }))
        .await;
    admin
        .send(
            "POST",
            reviews,
            &json!({ "spec": { "token": "canary-token-6b1f-wrong" } }),
        )
        .await;
    admin
        .send(
            "POST",
            reviews,
            &json!(format!("{{\"spec\": {{\"token\": \"{CANARY}\"")),
        )
        .await;
    admin
        .send("POST", reviews, &json!({ "spec": { "token": [CANARY] } }))
        .await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let wrong = json!({ "metadata": { "name": "s" }, "data": { "a": CANARY } });
    admin.send("POST", secrets, &wrong).await;
    answers
}

#[tokio::test]
async fn tokens_are_in_no_log_and_no_refusal() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone())
        .finish();
    let _guard = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
    let directory = tempfile::tempdir().expect("a directory");
    let audit = directory.path().join("audit.log");
    let mut tokens = Tokens::default();
    tokens.insert(CANARY, User::new("bob", [""; 0]));
    let builder = builder().0.tokens(tokens).audit_log(&audit);
    assert!(!format!("{builder:?}").contains(CANARY));
    let server = builder.start().await.expect("starts");
    let answers = chatter(&server).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let admin = Caller::admin(&server);
    admin
        .create(accounts, json!({ "metadata": { "name": "robot" } }))
        .await;
    let made = admin
        .create(&format!("{accounts}/robot/token"), json!({}))
        .await;
    let signed = made["status"]["token"]
        .as_str()
        .expect("a token")
        .to_owned();
    Caller::bearer(&server, &signed).get("/api/v1/pods").await;
    Caller::bearer(&server, &signed[..signed.len() - 4])
        .get("/api/v1/pods")
        .await;
    let (_, signature) = signed.rsplit_once('.').expect("three parts");
    assert!(
        log.text().contains("token refused"),
        "the log is listened to"
    );
    drop(server);
    let written = std::fs::read_to_string(&audit).expect("a log");
    for secret in [CANARY, &signature[..40]] {
        assert!(!log.text().contains(secret), "{}", log.text());
        assert!(!written.contains(secret), "{written}");
        assert!(
            answers
                .iter()
                .all(|answer| !answer.to_string().contains(secret))
        );
    }
}
