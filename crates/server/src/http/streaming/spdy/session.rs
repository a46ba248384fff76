//! Processes and ports over SPDY: a client opens a stream for each of its ends and says in headers what it is for.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, WriteHalf,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::frame::{self, FIN, Frame};
use super::headers::{HeaderReader, HeaderWriter};
use crate::agents::{StreamEnds, Streams, TerminalSize, Wanted};
use crate::http::streaming::channels::terminal_size;
use crate::http::streaming::messages::broken;
use crate::http::streaming::{Connect, Ended, Purpose, status_of};

/// How long a client may take to open its streams, and to take what is sent.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most streams of a connection at once.
const MOST_STREAMS: usize = 1_000;
/// How many frames may wait for the client, and chunks for a stream.
const WAITING: usize = 16;
/// Bytes that are taken from a port at once.
const CHUNK: usize = 32 * 1024;

/// Runs a connection for its purpose.
///
/// # Errors
/// When the connection breaks, or the client does not keep to the protocol.
pub(crate) async fn serve<IO>(connection: IO, purpose: Purpose) -> io::Result<()>
where
    IO: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = tokio::io::split(connection);
    let (out, waiting) = mpsc::channel(WAITING);
    let mut tasks = JoinSet::new();
    let written = tasks.spawn(write_frames(writer, waiting));
    let mut client = Client {
        reader,
        headers: HeaderReader::new(),
        replies: HeaderWriter::default(),
        out,
        open: 0,
    };
    let served = match purpose {
        Purpose::Process { wanted, run } => {
            let (streams, ends) = Streams::pair(wanted);
            client.process(wanted, ends, run(streams)).await
        }
        Purpose::Ports { connect, .. } => client.ports(&connect).await,
    };
    drop(client);
    // What is on its way to the client gets there, if the client takes it.
    let _ = timeout(PATIENCE, async {
        while tasks.join_next().await.is_some() {}
    })
    .await;
    written.abort();
    served
}

async fn write_frames(
    mut writer: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    while let Some(frame) = waiting.recv().await {
        timeout(PATIENCE, async {
            writer.write_all(&frame).await?;
            writer.flush().await
        })
        .await??;
    }
    writer.shutdown().await
}

struct Client<R> {
    reader: R,
    headers: HeaderReader,
    replies: HeaderWriter,
    out: mpsc::Sender<Vec<u8>>,
    /// How many streams are open.
    open: usize,
}

/// The streams of a process by what they are for.
#[derive(Default)]
struct Ids(HashMap<String, u32>);

impl<R: AsyncRead + Unpin> Client<R> {
    async fn send(&mut self, frame: Vec<u8>) -> io::Result<()> {
        let sent = self.out.send(frame).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// The next frame that is not about the connection itself; nothing when the client says goodbye.
    async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            match frame::read(&mut self.reader, &mut self.headers).await {
                Ok(Frame::Ping(id)) => self.send(frame::pong(id)).await?,
                Ok(Frame::Other) => {}
                Ok(Frame::GoAway) => return Ok(None),
                Ok(Frame::Open { stream, headers }) => {
                    self.open += 1;
                    if self.open > MOST_STREAMS {
                        return Err(broken("too many streams"));
                    }
                    let block = self.replies.empty();
                    self.send(frame::reply(stream, &block)).await?;
                    return Ok(Some(Frame::Open { stream, headers }));
                }
                Ok(frame) => return Ok(Some(frame)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until all streams of a process are there.
    async fn streams(&mut self, wanted: Wanted) -> io::Result<Ids> {
        let stderr = wanted.stderr && !wanted.tty;
        let all = [
            ("error", true),
            ("stdin", wanted.stdin),
            ("stdout", wanted.stdout),
            ("stderr", stderr),
            ("resize", wanted.tty),
        ];
        let needed = all.iter().filter(|(_, wanted)| *wanted).count();
        let mut ids = Ids::default();
        while ids.0.len() < needed {
            match self.next().await? {
                Some(Frame::Open { stream, headers }) => {
                    let kind = header(&headers, "streamtype").unwrap_or_default();
                    ids.0.insert(kind.to_owned(), stream);
                }
                Some(_) => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(ids)
    }

    async fn process(
        &mut self,
        wanted: Wanted,
        ends: StreamEnds,
        mut process: futures::future::BoxFuture<'static, Ended>,
    ) -> io::Result<()> {
        let ids = timeout(PATIENCE, self.streams(wanted)).await??;
        let StreamEnds {
            mut stdin,
            stdout,
            stderr,
            sizes,
        } = ends;
        let mut pumps = JoinSet::new();
        for (name, from) in [("stdout", stdout), ("stderr", stderr)] {
            if let (Some(id), Some(from)) = (ids.0.get(name), from) {
                pumps.spawn(pump_chunks(from, *id, self.out.clone()));
            }
        }
        let ended = loop {
            tokio::select! {
                result = &mut process => break result,
                frame = self.next() => match frame? {
                    None => return Ok(()),
                    Some(frame) => ids.input(frame, &mut stdin, &sizes).await,
                },
            }
        };
        while pumps.join_next().await.is_some() {}
        if let Some(id) = ids.0.get("error") {
            let status = status_of(&ended);
            self.send(frame::data(*id, &status, FIN)).await?;
        }
        self.send(frame::go_away(0)).await?;
        // The client has what it needs once it closes, or soon.
        let closed = async { while let Ok(Some(_)) = self.next().await {} };
        let _ = timeout(Duration::from_secs(2), closed).await;
        Ok(())
    }

    async fn ports(&mut self, connect: &Connect) -> io::Result<()> {
        let mut forwards = Forwards::default();
        let mut tasks = JoinSet::new();
        while let Some(next) = self.next().await? {
            match next {
                Frame::Open { stream, headers } => {
                    if let Some(forward) = forwards.open(stream, &headers)? {
                        let (near, far) = tokio::io::duplex(CHUNK);
                        let (read, write) = tokio::io::split(near);
                        forwards.inputs.insert(forward.data, write);
                        let out = self.out.clone();
                        tasks.spawn(run_forward(connect.clone(), forward, (read, far), out));
                    }
                }
                Frame::Data {
                    stream,
                    bytes,
                    last,
                } => forwards.input(stream, &bytes, last).await,
                Frame::Reset { stream } => forwards.close(stream),
                _ => {}
            }
            while tasks.try_join_next().is_some() {
                self.open = self.open.saturating_sub(2);
            }
        }
        Ok(())
    }
}

impl Ids {
    fn name(&self, stream: u32) -> &str {
        let found = self.0.iter().find(|(_, id)| **id == stream);
        found.map_or("", |(name, _)| name)
    }

    /// What a client sends to a process.
    async fn input(
        &self,
        frame: Frame,
        stdin: &mut Option<mpsc::Sender<Bytes>>,
        sizes: &mpsc::Sender<TerminalSize>,
    ) {
        let (stream, bytes, last) = match frame {
            Frame::Data {
                stream,
                bytes,
                last,
            } => (stream, bytes, last),
            Frame::Reset { stream } => (stream, Vec::new(), true),
            _ => return,
        };
        match self.name(stream) {
            "stdin" => {
                if let Some(stdin) = stdin.as_ref().filter(|_| !bytes.is_empty()) {
                    // An error means that the process reads no more.
                    let _ = stdin.send(bytes.into()).await;
                }
                if last {
                    *stdin = None;
                }
            }
            "resize" => {
                if let Some(size) = terminal_size(&bytes) {
                    // An error means that the process does not ask for sizes.
                    let _ = sizes.try_send(size);
                }
            }
            _ => {}
        }
    }
}

async fn pump_chunks(mut from: mpsc::Receiver<Bytes>, stream: u32, out: mpsc::Sender<Vec<u8>>) {
    while let Some(bytes) = from.recv().await {
        for chunk in bytes.chunks(CHUNK) {
            if out.send(frame::data(stream, chunk, 0)).await.is_err() {
                return;
            }
        }
    }
    // An error means that the connection has ended.
    let _ = out.send(frame::data(stream, b"", FIN)).await;
}

/// A connection with a port: its two streams.
#[derive(Debug, Clone, Copy, Default)]
struct Forward {
    port: u16,
    data: u32,
    error: u32,
}

/// The connections with ports, and what belongs to each.
#[derive(Default)]
struct Forwards {
    /// Those that lack one of their streams, by the client's number.
    half: HashMap<String, Forward>,
    inputs: HashMap<u32, WriteHalf<DuplexStream>>,
}

impl Forwards {
    /// A stream was opened; gives the connection if it is complete.
    fn open(&mut self, stream: u32, headers: &[(String, String)]) -> io::Result<Option<Forward>> {
        let port = header(headers, "port").and_then(|port| port.parse().ok());
        let port = port.ok_or_else(|| broken("a stream without a port"))?;
        let request = header(headers, "requestid").unwrap_or("0").to_owned();
        let entry = self.half.entry(request.clone()).or_default();
        entry.port = port;
        match header(headers, "streamtype") {
            Some("data") => entry.data = stream,
            Some("error") => entry.error = stream,
            _ => return Err(broken("a stream of an unknown type")),
        }
        let complete = entry.data != 0 && entry.error != 0;
        Ok(if complete {
            self.half.remove(&request)
        } else {
            None
        })
    }

    async fn input(&mut self, stream: u32, bytes: &[u8], last: bool) {
        if let Some(input) = self.inputs.get_mut(&stream) {
            // An error means that the port was closed, which is reported to the client.
            let _ = input.write_all(bytes).await;
            if last {
                let _ = input.shutdown().await;
                self.inputs.remove(&stream);
            }
        }
    }

    fn close(&mut self, stream: u32) {
        self.inputs.remove(&stream);
    }
}

async fn run_forward(
    connect: Connect,
    forward: Forward,
    (mut read, far): (tokio::io::ReadHalf<DuplexStream>, DuplexStream),
    out: mpsc::Sender<Vec<u8>>,
) {
    let pump = async {
        let mut buffer = vec![0; CHUNK];
        while let Ok(count) = read.read(&mut buffer).await {
            let last = if count == 0 { FIN } else { 0 };
            let frame = frame::data(forward.data, &buffer[..count], last);
            if out.send(frame).await.is_err() || count == 0 {
                return;
            }
        }
    };
    let (connected, ()) = tokio::join!(connect(forward.port, far), pump);
    let text = match connected {
        Ok(()) => String::new(),
        Err(error) => format!("error forwarding port {} to pod: {error}", forward.port),
    };
    // Errors mean that the connection has ended.
    let _ = out
        .send(frame::data(forward.error, text.as_bytes(), FIN))
        .await;
    if !text.is_empty() {
        let _ = out.send(frame::reset(forward.data)).await;
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}
