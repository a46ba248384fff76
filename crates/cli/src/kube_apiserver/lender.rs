//! Asks the etcd of `--etcd-servers` for a directory to keep the cluster in.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::etcd::{self, DIRECTORY_PATH};
use crate::flags::Flags;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const MAX_ANSWER: u64 = 16 * 1024;

/// The directory that our etcd lends. Any other etcd lends none, and the cluster is kept in memory.
pub(crate) async fn directory(flags: &Flags) -> Option<PathBuf> {
    for url in flags.values("etcd-servers") {
        match tokio::time::timeout(PATIENCE, ask(url)).await {
            Ok(Ok(Some(directory))) => return Some(PathBuf::from(directory).join("kubewright")),
            Ok(Ok(None)) => eprintln!(
                "kube-apiserver: {url} is not the etcd of `kubewright envtest`; the cluster is kept in memory"
            ),
            Ok(Err(error)) => eprintln!(
                "kube-apiserver: {url} does not answer ({error:#}); the cluster is kept in memory"
            ),
            Err(_) => eprintln!(
                "kube-apiserver: {url} does not answer in time; the cluster is kept in memory"
            ),
        }
    }
    None
}

async fn ask(url: &str) -> anyhow::Result<Option<String>> {
    let mut stream = TcpStream::connect(etcd::address(url).await?).await?;
    let request = format!("GET {DIRECTORY_PATH} HTTP/1.0\r\nhost: etcd\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    let answer = String::from_utf8(answer)?;
    Ok(body(&answer).map(str::to_owned))
}

/// The body of a good answer.
fn body(answer: &str) -> Option<&str> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let good = head.lines().next()?.split(' ').nth(1)? == "200";
    (good && body.starts_with('/')).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_with_a_path_lends_a_directory() {
        for (answer, expected) in [
            ("HTTP/1.0 200 OK\r\ndate: x\r\n\r\n/data", Some("/data")),
            ("HTTP/1.0 404 Not Found\r\n\r\n/data", None),
            ("HTTP/1.0 200 OK\r\n\r\n404 page not found", None),
            ("nonsense", None),
        ] {
            assert_eq!(body(answer), expected, "{answer}");
        }
    }
}
