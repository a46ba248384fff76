//! Requests that must not get in, and objects that must not do harm.

use http::{Method, Request};
use http_body_util::BodyExt as _;
use kubewright_console::Console;
use kubewright_server::Server;
use kubewright_testing::Wire;
use serde_json::json;

use crate::support::{self, operations};

async fn console() -> (kubewright_console::Running, support::Page, kube::Client) {
    let server = Server::builder().start().await.expect("it starts");
    let client = Wire::new(server.service()).client();
    let (running, page) = support::open(Console::new(client.clone())).await;
    (running, page, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_forbid_foreign_code_frames_and_caches() {
    let (_running, page, _) = console().await;
    let response = page
        .send(Request::get(format!("{}/", page.base)), String::new())
        .await;
    let header = |name: &str| {
        response.headers()[name]
            .to_str()
            .expect("it is text")
            .to_owned()
    };
    let policy = header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
    ] {
        assert!(policy.contains(part), "{part} is missing in {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert_eq!(header("cross-origin-resource-policy"), "same-origin");
    assert!(
        response
            .headers()
            .get("access-control-allow-origin")
            .is_none()
    );
    assert!(response.headers().get("set-cookie").is_none());
    let body = response
        .into_body()
        .collect()
        .await
        .expect("it is read")
        .to_bytes();
    let html = String::from_utf8_lossy(&body).into_owned();
    assert!(
        !html.contains("<style")
            && !html.contains("onclick")
            && !html.contains("http://")
            && !html.contains("https://"),
        "{html}"
    );
}

/// Who tries, with which headers, and the answer.
type Attempt<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_get_in() {
    let (_running, page, _) = console().await;
    let bearer = format!("Bearer {}", page.bearer);
    let cases: &[Attempt<'_>] = &[
        ("no token", &[], 401),
        (
            "forged token",
            &[(
                "authorization",
                "Bearer AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            )],
            401,
        ),
        ("token in a cookie", &[("cookie", "bearer=x")], 401),
        (
            "rebound name",
            &[("authorization", &bearer), ("host", "attacker.example")],
            421,
        ),
        (
            "rebound name with the port",
            &[("authorization", &bearer), ("host", "attacker.example:80")],
            421,
        ),
        (
            "another origin",
            &[
                ("authorization", &bearer),
                ("origin", "http://attacker.example"),
            ],
            403,
        ),
        (
            "an opaque origin",
            &[("authorization", &bearer), ("origin", "null")],
            403,
        ),
        (
            "a page elsewhere",
            &[
                ("authorization", &bearer),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "no-cors"),
            ],
            403,
        ),
        (
            "the page itself",
            &[
                ("authorization", &bearer),
                ("sec-fetch-site", "same-origin"),
            ],
            200,
        ),
    ];
    for (who, headers, status) in cases {
        let mut request = Request::get(format!("{}/api/about", page.base));
        for (name, value) in *headers {
            request = request.header(*name, *value);
        }
        let response = page.send(request, String::new()).await;
        assert_eq!(response.status(), *status, "{who}");
    }
    let forged = page.post("/api/session", &json!({"ticket": "guess"})).await;
    assert_eq!(forged.0, 401);
    let not_there = page
        .send(
            Request::builder()
                .method(Method::GET)
                .uri(format!("{}/../etc/passwd", page.base)),
            String::new(),
        )
        .await;
    assert_eq!(not_there.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_change_nothing() {
    let (_running, page, client) = console().await;
    let map = json!({"metadata": {"name": "kept", "namespace": "default"}});
    let map = support::create(&client, "/api/v1/namespaces/default/configmaps", map).await;
    let delete = json!({"kind": "v1/configmaps", "ns": "default", "name": "kept", "uid": map["metadata"]["uid"]});
    let bearer = format!("Bearer {}", page.bearer);
    let json_type = ("content-type", "application/json");
    let cases: &[Attempt<'_>] = &[
        ("no token", &[json_type], 401),
        (
            "forged token",
            &[json_type, ("authorization", "Bearer AAAA")],
            401,
        ),
        // A form of another page can send these types without asking first.
        (
            "a form",
            &[("authorization", &bearer), ("content-type", "text/plain")],
            415,
        ),
        ("no type", &[("authorization", &bearer)], 415),
        (
            "another origin",
            &[
                json_type,
                ("authorization", &bearer),
                ("origin", "http://attacker.example"),
            ],
            403,
        ),
        (
            "rebound name",
            &[
                json_type,
                ("authorization", &bearer),
                ("host", "attacker.example"),
            ],
            421,
        ),
        (
            "another site",
            &[
                json_type,
                ("authorization", &bearer),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", "cors"),
            ],
            403,
        ),
    ];
    for path in [
        "delete",
        "edit",
        "scale",
        "restart",
        "cordon",
        "drain",
        "snapshots",
        "snapshots/fork",
    ] {
        for (who, headers, status) in cases {
            let mut request = Request::post(format!("{}/api/{path}", page.base));
            for (name, value) in *headers {
                request = request.header(*name, *value);
            }
            let response = page.send(request, delete.to_string()).await;
            assert_eq!(response.status(), *status, "{who} at {path}");
        }
    }
    let large = json!({"kind": "v1/configmaps", "ns": "default", "name": "kept", "yaml": "x".repeat(9 << 20)});
    assert_eq!(
        page.post("/api/edit", &large).await.0,
        400,
        "a body has a largest size"
    );
    for name in [
        "",
        "..",
        "../secrets/x",
        "a\nb",
        "a/b",
        "\u{0}",
        "\u{202e}kept",
    ] {
        let target = json!({"kind": "v1/configmaps", "ns": "default", "name": name, "uid": map["metadata"]["uid"]});
        let (status, answer) = page.post("/api/delete", &target).await;
        assert!((400..500).contains(&status), "{name:?}: {status} {answer}");
    }
    support::read_object(&client, "/api/v1/namespaces/default/configmaps/kept").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_objects_stay_data() {
    let (_running, page, client) = console().await;
    let script = "<script>alert(1)</script>";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "hostile", "namespace": "default", "annotations": {"a": "x".repeat(200_000), "b": script}},
        "data": {"k": "\u{0}\u{1b}[2J\u{202e}"}});
    support::create(&client, "/api/v1/namespaces/default/configmaps", map).await;
    let mut table = page
        .stream(json!([{"topic": "table", "kind": "v1/configmaps"}]))
        .await;
    let row = table
        .until("the row", |message| {
            operations(message)
                .into_iter()
                .find(|row| row["name"] == "hostile")
        })
        .await;
    assert!(
        row.to_string().len() < 2_000,
        "a row carries no annotations"
    );
    let mut object = page.stream(json!([{"topic": "object", "kind": "v1/configmaps", "ns": "default", "name": "hostile"}])).await;
    let shown = object
        .until("the object", |message| {
            message["object"]
                .is_object()
                .then(|| message["object"].clone())
        })
        .await;
    assert_eq!(shown["metadata"]["annotations"]["b"], script);
    assert_eq!(
        shown["metadata"]["annotations"]["a"].as_str().map(str::len),
        Some(200_000)
    );
    // Names of other places are names, not paths.
    for name in ["../../secrets/x", "a\nb", "a%2Fb", "\u{0}"] {
        let query = format!(
            "/api/object?kind=v1/configmaps&ns=default&name={}",
            name.bytes()
                .map(|byte| format!("%{byte:02X}"))
                .collect::<String>()
        );
        let (status, answer) = page.get(&query).await;
        assert!((400..500).contains(&status), "{name:?}: {status} {answer}");
    }
    let (status, _) = page
        .get("/api/object?kind=v1/configmaps&ns=default&name=..")
        .await;
    assert_eq!(status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_until_somebody_asks() {
    let (_running, page, client) = console().await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"password": "hunter2"}});
    support::create(&client, "/api/v1/namespaces/default/secrets", secret).await;
    let mut object = page
        .stream(json!([{"topic": "object", "kind": "v1/secrets", "ns": "default", "name": "s"}]))
        .await;
    let shown = object
        .until("the secret", |message| {
            message["object"].is_object().then(|| message.to_string())
        })
        .await;
    assert!(!shown.contains("aHVudGVyMg"), "{shown}");
    let mut table = page
        .stream(json!([{"topic": "table", "kind": "v1/secrets"}]))
        .await;
    let rows = table
        .until("the table", |message| {
            (!operations(message).is_empty()).then(|| message.to_string())
        })
        .await;
    assert!(!rows.contains("aHVudGVyMg"), "{rows}");
    let masked = page
        .get("/api/object?kind=v1/secrets&ns=default&name=s")
        .await
        .1;
    assert_eq!(masked["data"]["password"], "•••");
    let revealed = page
        .get("/api/object?kind=v1/secrets&ns=default&name=s&reveal=1")
        .await
        .1;
    assert_eq!(revealed["data"]["password"], "aHVudGVyMg==");
}
