//! The audit log says who asked for what, and nothing of what they said.

use serde_json::{Value, json};

use crate::host::{Caller, builder, config_map};

async fn events(run: impl AsyncFnOnce(&kubewright_server::Server)) -> (String, Vec<Value>) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("audit.log");
    let server = builder().0.audit_log(&path).start().await.expect("starts");
    run(&server).await;
    // The last events are written when the server goes.
    drop(server);
    let text = std::fs::read_to_string(&path).expect("a log");
    let events = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    (text, events)
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("not poisoned").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn who_records_an_event_says_that_the_device_is_stuck() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone());
    let _logged = tracing::subscriber::set_default(subscriber.finish());
    let directory = tempfile::tempdir().expect("a directory");
    // A pipe that nobody reads: it takes 64 KiB, then writes block.
    let path = directory.path().join("audit");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.expect("mkfifo is there").success());
    let _reader = std::fs::File::options().read(true).write(true).open(&path);
    let (builder, clock) = builder();
    let server = builder.audit_log(&path).start().await.expect("starts");
    for _ in 0..3 {
        for _ in 0..50 {
            Caller::admin(&server)
                .get(&format!("/{}", "x".repeat(3_000)))
                .await;
        }
        // The thread writes what the pipe takes.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        clock.advance(10);
    }
    let logged = log.0.lock().expect("not poisoned").clone();
    let logged = String::from_utf8_lossy(&logged);
    assert_eq!(logged.matches("device is stuck").count(), 1, "{logged:?}");
}

#[tokio::test]
async fn every_request_is_one_event() {
    let (_, events) = events(async |server| {
        let maps = "/api/v1/namespaces/default/configmaps";
        Caller::admin(server).create(maps, config_map("a")).await;
        let bob = Caller::admin(server)
            .header("Impersonate-User", "bob")
            .header("User-Agent", "test/1");
        bob.get(&format!("{maps}/a")).await;
        Caller::bearer(server, "bad").get("/version").await;
    })
    .await;
    let [created, read, strange] = events.as_slice() else {
        panic!("three requests are three events: {events:#?}");
    };
    assert_eq!(created["verb"], "create");
    assert_eq!(created["responseStatus"]["code"], 201);
    assert_eq!(created["user"]["username"], "kubernetes-admin");
    assert_eq!(
        created["requestReceivedTimestamp"],
        "2027-01-15T08:00:00.000000Z"
    );
    assert_eq!(
        (&created["level"], &created["stage"]),
        (&json!("Metadata"), &json!("ResponseComplete"))
    );
    assert_eq!(
        created["objectRef"],
        json!({ "resource": "configmaps", "namespace": "default", "apiVersion": "v1" })
    );
    assert_eq!(read["impersonatedUser"]["username"], "bob");
    assert_eq!(
        read["annotations"]["authorization.k8s.io/decision"],
        "forbid"
    );
    assert_eq!(
        (&read["objectRef"]["name"], &read["responseStatus"]["code"]),
        (&json!("a"), &json!(403))
    );
    assert_eq!(read["userAgent"], "test/1");
    assert_eq!(
        (&strange["user"], &strange["responseStatus"]["code"]),
        (&json!({}), &json!(401))
    );
}

#[tokio::test]
async fn grounds_of_a_decision_are_written_down() {
    let (_, events) = events(async |server| {
        Caller::user(server, "bob").get("/version").await;
    })
    .await;
    let annotations = &events[0]["annotations"];
    assert_eq!(annotations["authorization.k8s.io/decision"], "allow");
    let reason = annotations["authorization.k8s.io/reason"]
        .as_str()
        .expect("a reason");
    assert!(
        reason.starts_with("RBAC: allowed by ClusterRoleBinding"),
        "{reason}"
    );
}

#[tokio::test]
async fn bodies_are_not_written() {
    let (text, _) = events(async |server| {
        let secret = json!({ "metadata": { "name": "s" }, "stringData": { "password": "canary-in-a-body" } });
        Caller::admin(server).create("/api/v1/namespaces/default/secrets", secret).await;
    })
    .await;
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test]
async fn log_that_cannot_be_opened_is_an_error() {
    let error = builder()
        .0
        .audit_log("/nowhere/at/all")
        .start()
        .await
        .expect_err("no such directory");
    assert_eq!(
        error.to_string(),
        "the audit log /nowhere/at/all cannot be opened"
    );
}
