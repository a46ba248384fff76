//! What a server says when its disk has failed.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use kubewright_server::Server;
use serde_json::json;
use tower::ServiceExt;

async fn call(server: &Server, request: http::request::Builder, body: String) -> (u16, String) {
    let request = request.body(Full::new(Bytes::from(body)));
    let answer = server.service().oneshot(request.expect("a request")).await;
    let answer = answer.expect("it answers");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body");
    (code, String::from_utf8_lossy(&body.to_bytes()).into_owned())
}

async fn get(server: &Server, path: &str) -> (u16, String) {
    call(server, Request::get(path), String::new()).await
}

#[tokio::test]
async fn health_fails_once_the_disk_has_failed() {
    let dir = tempfile::TempDir::new().expect("there is room");
    let server = Server::builder().data_dir(dir.path()).start().await;
    let server = server.expect("it starts");
    for endpoint in ["healthz", "livez", "readyz"] {
        let (code, report) = get(&server, &format!("/{endpoint}?verbose")).await;
        assert_eq!(code, 200, "{report}");
        assert!(report.contains("[+]storage ok\n"), "{report}");
    }
    // The log goes on in its file, which has no name any more; the next file cannot be created.
    std::fs::remove_dir_all(dir.path().join("objects")).expect("it exists");
    let mut refused = None;
    for n in 0..40 {
        let object = json!({
            "metadata": { "name": format!("c{n}") }, "data": { "text": "x".repeat(900_000) },
        });
        let request = Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/json");
        let (code, body) = call(&server, request, object.to_string()).await;
        if code != 201 {
            refused = Some((code, body));
            break;
        }
    }
    let (code, body) = refused.expect("the log fills a file within 40 MB");
    assert_eq!(code, 500, "{body}");
    for endpoint in ["healthz", "livez", "readyz"] {
        for path in [format!("/{endpoint}"), format!("/{endpoint}/storage")] {
            let (code, report) = get(&server, &path).await;
            assert_eq!(code, 500, "{path}: {report}");
            assert!(report.contains("[-]storage failed: "), "{path}: {report}");
            let last = format!("{endpoint} check failed\n");
            assert!(report.ends_with(&last), "{path}: {report}");
        }
        let (code, report) = get(&server, &format!("/{endpoint}/ping")).await;
        assert_eq!((code, report.as_str()), (200, "ok"));
    }
}
