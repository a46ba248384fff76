//! Requests over plain HTTP, one after the other and many at once.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many clients there are at once.
const CLIENTS: usize = 4;

/// Gets a path; returns the body of an answer with the code 200.
pub(crate) fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).context("connecting")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").context("asking")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("reading")?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let line = head.lines().next().unwrap_or("");
    if line.split(' ').nth(1) != Some("200") {
        bail!("{line:?}");
    }
    Ok(body.to_owned())
}

/// Clients that send one request after the other.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<(usize, Vec<String>)>>,
}

impl Load {
    /// Starts clients that get a path until they are stopped.
    pub(crate) fn start(address: SocketAddr, path: &'static str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |stop: Arc<AtomicBool>| {
            std::thread::spawn(move || {
                let (mut good, mut bad) = (0, Vec::new());
                while !stop.load(Ordering::Relaxed) {
                    match get(address, path) {
                        Ok(_) => good += 1,
                        Err(error) => bad.push(format!("{error:#}")),
                    }
                }
                (good, bad)
            })
        };
        let clients = (0..CLIENTS).map(|_| client(stop.clone())).collect();
        Self { stop, clients }
    }

    /// Stops all clients; returns how many requests were answered, and what the others met.
    pub(crate) fn end(self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let (mut good, mut bad) = (0, Vec::new());
        for client in self.clients {
            let (answered, failed) = client.join().unwrap_or((0, vec!["panicked".to_owned()]));
            good += answered;
            bad.extend(failed);
        }
        (good, bad)
    }
}
