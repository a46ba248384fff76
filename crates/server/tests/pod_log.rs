//! Logs of containers, from whoever has them to whoever asks.

use std::sync::Arc;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use jiff::Timestamp;
use kubewright_server::{LogLine, LogOf, LogPiece, LogRun, MoreLog, NoLog, PodLogs, Server};
use serde_json::json;
use tower::ServiceExt;

/// A container that wrote two lines in its first second, and says a third when it is waited for.
struct ThreeLines;

impl PodLogs for ThreeLines {
    fn read(&self, of: &LogOf, from: u64) -> Result<LogPiece, NoLog> {
        if of.container == "lazy" {
            return Err(NoLog::NotStarted("ContainerCreating".to_owned()));
        }
        if of.run == LogRun::Previous {
            return Err(NoLog::NoPrevious);
        }
        let line = |n: i64| LogLine {
            at: Timestamp::from_second(n).expect("in range"),
            text: format!("line {n} of {}", of.container),
        };
        let (lines, next, more) = match from {
            0 => (
                vec![line(1), line(2)],
                2,
                MoreLog::After(Box::pin(tokio::task::yield_now())),
            ),
            _ => (vec![line(3)], 3, MoreLog::Never),
        };
        Ok(LogPiece { lines, next, more })
    }
}

async fn server_with(pod: serde_json::Value) -> Server {
    let server = Server::builder()
        .pod_logs(Arc::new(ThreeLines))
        .start()
        .await;
    let server = server.expect("starts");
    let request = Request::post("/api/v1/namespaces/default/pods")
        .header("content-type", "application/json")
        .body(http_body_util::Full::new(bytes::Bytes::from(
            pod.to_string(),
        )))
        .expect("a request");
    let answer = server.service().oneshot(request).await.expect("answers");
    assert_eq!(answer.status(), StatusCode::CREATED);
    server
}

async fn log(server: &Server, query: &str) -> (u16, String) {
    let path = format!("/api/v1/namespaces/default/pods/p/log?{query}");
    let request = Request::get(path).body(Empty::<bytes::Bytes>::new());
    let answer = server.service().oneshot(request.expect("a request")).await;
    let answer = answer.expect("answers");
    let code = answer.status().as_u16();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    let text = String::from_utf8(body.to_vec()).expect("text");
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(status) => (code, status["message"].as_str().unwrap_or("").to_owned()),
        Err(_) => (code, text),
    }
}

#[tokio::test]
async fn log_is_read_whole_in_part_or_as_it_grows() {
    let server = server_with(json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "a", "image": "i"}, {"name": "lazy", "image": "i"}]},
    }))
    .await;
    let choose = "a container name must be specified for pod p, choose one of: [a lazy]";
    let waiting = "container \"lazy\" in pod \"p\" is waiting to start: ContainerCreating";
    for (query, code, expect) in [
        ("container=a", 200, "line 1 of a\nline 2 of a\n"),
        (
            "container=a&follow=true",
            200,
            "line 1 of a\nline 2 of a\nline 3 of a\n",
        ),
        ("container=a&tailLines=1", 200, "line 2 of a\n"),
        ("container=a&tailLines=0&follow=true", 200, "line 3 of a\n"),
        ("container=a&limitBytes=6", 200, "line 1"),
        (
            "container=a&sinceTime=1970-01-01T00:00:02Z&timestamps=true",
            200,
            "1970-01-01T00:00:02.000000000Z line 2 of a\n",
        ),
        ("container=a&sinceSeconds=5", 200, ""),
        (
            "container=a&tailLines=-1",
            400,
            "tailLines must be greater than or equal to 0",
        ),
        (
            "container=a&previous=true",
            400,
            "previous terminated container \"a\" in pod \"p\" not found",
        ),
        ("container=b", 400, "container b is not valid for pod p"),
        ("container=lazy", 400, waiting),
        ("", 400, choose),
    ] {
        assert_eq!(
            log(&server, query).await,
            (code, expect.to_owned()),
            "{query}"
        );
    }
}

#[tokio::test]
async fn pod_without_a_node_has_written_nothing() {
    let server = server_with(json!({
        "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]},
    }))
    .await;
    assert_eq!(log(&server, "").await, (200, String::new()));
}
