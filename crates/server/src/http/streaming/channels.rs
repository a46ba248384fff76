//! Channels over WebSocket: the first byte of a message says which stream it belongs to.
//!
//! Mirrors `remotecommand.createWebSocketStreams` and `portforward.websocketStreamHandler` of the kubelet's streaming
//! server, with the protocols `channel.k8s.io`, `v4.channel.k8s.io`, `v5.channel.k8s.io` and their base64 kin.

use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::messages::{Message, MessageReader, broken, send};
use super::{Connect, Purpose, status_of};
use crate::agents::{StreamEnds, Streams, TerminalSize, Wanted};
use crate::http::websocket::frame::Opcode;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Protocol 5: a channel is closed; its number follows.
const CLOSE: u8 = 255;
/// Status 1000: all is done.
const NORMAL_CLOSURE: [u8; 2] = 1000_u16.to_be_bytes();
/// Bytes that are taken from a port at once.
const CHUNK: usize = 32 * 1024;
/// How many messages may wait for the client.
const WAITING: usize = 16;
/// How long a client may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Binary,
    Base64,
}

/// Runs a connection for its purpose.
///
/// # Errors
/// When the connection breaks, or the client does not keep to the protocol.
pub(super) async fn serve<IO>(connection: IO, purpose: Purpose, coding: Coding) -> io::Result<()>
where
    IO: AsyncRead + AsyncWrite + Send + 'static,
{
    let (reader, writer) = tokio::io::split(connection);
    let channels = Channels::new(reader, writer, coding);
    match purpose {
        Purpose::Process { wanted, run } => {
            let (streams, ends) = Streams::pair(wanted);
            channels.process(wanted, ends, run(streams)).await
        }
        Purpose::Ports { ports, connect } => channels.ports(&ports, &connect).await,
    }
}

struct Channels<R, W> {
    reader: MessageReader<R>,
    writer: W,
    coding: Coding,
}

/// Something for the client.
enum Out {
    Data(u8, Bytes),
    Pong(Vec<u8>),
}

impl<R, W> Channels<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    fn new(reader: R, writer: W, coding: Coding) -> Self {
        Self {
            reader: MessageReader::new(reader),
            writer,
            coding,
        }
    }

    async fn process(
        self,
        wanted: Wanted,
        ends: StreamEnds,
        mut process: futures::future::BoxFuture<'static, super::Ended>,
    ) -> io::Result<()> {
        let Self {
            mut reader,
            mut writer,
            coding,
        } = self;
        let StreamEnds {
            stdin,
            stdout,
            stderr,
            sizes,
        } = ends;
        // An empty message on the lowest channel tells the client that all is set up.
        let lowest = match (wanted.stdout, wanted.stderr && !wanted.tty) {
            (true, _) => STDOUT,
            (false, true) => STDERR,
            (false, false) => ERROR,
        };
        write(&mut writer, coding, lowest, b"").await?;
        let (pongs, mut unanswered) = mpsc::channel(WAITING);
        let mut input = Input {
            stdin,
            sizes,
            pongs,
            coding,
        };
        let mut listen = std::pin::pin!(input.listen(&mut reader));
        let mut output = Output { stdout, stderr };
        let mut ended = None;
        loop {
            tokio::select! {
                // What was written comes before the end of who wrote it, and a client that left ends everything.
                biased;
                left = listen.as_mut() => return left,
                Some(ping) = unanswered.recv() => send(&mut writer, Opcode::Pong, &ping).await?,
                piece = output.next(), if !output.is_over() => if let Some((channel, bytes)) = piece {
                    write(&mut writer, coding, channel, &bytes).await?;
                },
                result = &mut process, if ended.is_none() => ended = Some(result),
            }
            if ended.is_some() && output.is_over() {
                break;
            }
        }
        let status = status_of(&ended.unwrap_or(Ok(None)));
        write(&mut writer, coding, ERROR, &status).await?;
        send(&mut writer, Opcode::Close, &NORMAL_CLOSURE).await?;
        // The client closes next; whatever else it says is not read any more.
        tokio::time::timeout(GOODBYE, listen)
            .await
            .unwrap_or(Ok(()))
    }

    /// Two channels for each port: data and errors. Both begin with the number of the port.
    async fn ports(self, ports: &[u16], connect: &Connect) -> io::Result<()> {
        let Self {
            mut reader,
            mut writer,
            coding,
        } = self;
        let (out, mut waiting) = mpsc::channel(WAITING);
        let mut tasks = JoinSet::new();
        let mut inputs = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let channel = u8::try_from(index * 2).map_err(|_| broken("too many ports"))?;
            for channel in [channel, channel + 1] {
                write(&mut writer, coding, channel, &port.to_le_bytes()).await?;
            }
            let (near, far) = tokio::io::duplex(CHUNK);
            let (read, write) = tokio::io::split(near);
            inputs.push(Some(write));
            tasks.spawn(forward(
                connect.clone(),
                *port,
                far,
                channel + 1,
                out.clone(),
            ));
            tasks.spawn(pump(read, channel, out.clone()));
        }
        loop {
            tokio::select! {
                message = reader.next() => match message? {
                    Message::Close => break,
                    Message::Ping(ping) => {
                        // An error means that this very loop has ended.
                        let _ = out.send(Out::Pong(ping)).await;
                    }
                    Message::Data(data) => {
                        let (channel, bytes) = decode(coding, data)?;
                        let input = inputs.get_mut(usize::from(channel / 2)).and_then(Option::as_mut);
                        if let Some(input) = input.filter(|_| channel % 2 == 0) {
                            input.write_all(&bytes).await?;
                        }
                    }
                },
                Some(next) = waiting.recv() => match next {
                    Out::Data(channel, bytes) => write(&mut writer, coding, channel, &bytes).await?,
                    Out::Pong(ping) => send(&mut writer, Opcode::Pong, &ping).await?,
                },
                Some(_) = tasks.join_next() => if tasks.is_empty() && waiting.is_empty() {
                    break;
                },
            }
        }
        send(&mut writer, Opcode::Close, &NORMAL_CLOSURE).await
    }
}

/// Connects with a port; what goes wrong is sent on the error channel.
async fn forward(
    connect: Connect,
    port: u16,
    far: DuplexStream,
    errors: u8,
    out: mpsc::Sender<Out>,
) {
    if let Err(error) = connect(port, far).await {
        // An error means that the connection has ended.
        let _ = out.send(Out::Data(errors, error.to_string().into())).await;
    }
}

/// Sends what comes from a port.
async fn pump(mut read: tokio::io::ReadHalf<DuplexStream>, channel: u8, out: mpsc::Sender<Out>) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count) = read.read(&mut buffer).await {
        let bytes = Bytes::copy_from_slice(&buffer[..count]);
        if count == 0 || out.send(Out::Data(channel, bytes)).await.is_err() {
            return;
        }
    }
}

/// What a client sends to a process.
struct Input {
    stdin: Option<mpsc::Sender<Bytes>>,
    sizes: mpsc::Sender<TerminalSize>,
    pongs: mpsc::Sender<Vec<u8>>,
    coding: Coding,
}

impl Input {
    /// Passes on what a client sends, until it closes.
    async fn listen<R>(&mut self, reader: &mut MessageReader<R>) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
    {
        loop {
            let data = match reader.next().await? {
                Message::Close => return Ok(()),
                Message::Ping(ping) => {
                    // One that is not taken in time may be left unanswered, as the next one is answered.
                    let _ = self.pongs.try_send(ping);
                    continue;
                }
                Message::Data(data) => data,
            };
            match decode(self.coding, data)? {
                (CLOSE, which) if which.first() == Some(&STDIN) => self.stdin = None,
                (STDIN, bytes) => {
                    if let Some(stdin) = &self.stdin {
                        // An error means that the process reads no more.
                        let _ = stdin.send(bytes.into()).await;
                    }
                }
                (RESIZE, bytes) => {
                    if let Some(size) = terminal_size(&bytes) {
                        // An error means that the process does not ask for sizes.
                        let _ = self.sizes.try_send(size);
                    }
                }
                _ => {}
            }
        }
    }
}

/// `{"Width":80,"Height":24}`
pub(super) fn terminal_size(bytes: &[u8]) -> Option<TerminalSize> {
    let size: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let field = |name: &str| u16::try_from(size[name].as_u64()?).ok();
    Some(TerminalSize {
        width: field("Width")?,
        height: field("Height")?,
    })
}

/// What a process writes.
struct Output {
    stdout: Option<mpsc::Receiver<Bytes>>,
    stderr: Option<mpsc::Receiver<Bytes>>,
}

impl Output {
    /// The next piece; nothing when there is no more.
    async fn next(&mut self) -> Option<(u8, Bytes)> {
        async fn piece(from: &mut Option<mpsc::Receiver<Bytes>>) -> Option<Bytes> {
            match from {
                Some(receiver) => receiver.recv().await,
                None => std::future::pending().await,
            }
        }
        while !self.is_over() {
            let (channel, piece) = tokio::select! {
                piece = piece(&mut self.stdout) => (STDOUT, piece),
                piece = piece(&mut self.stderr) => (STDERR, piece),
            };
            match (piece, channel) {
                (Some(bytes), channel) => return Some((channel, bytes)),
                (None, STDOUT) => self.stdout = None,
                (None, _) => self.stderr = None,
            }
        }
        None
    }

    fn is_over(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}

async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    coding: Coding,
    channel: u8,
    bytes: &[u8],
) -> io::Result<()> {
    match coding {
        Coding::Binary => {
            let mut payload = Vec::with_capacity(bytes.len() + 1);
            payload.push(channel);
            payload.extend_from_slice(bytes);
            send(writer, Opcode::Binary, &payload).await
        }
        Coding::Base64 => {
            let payload = format!(
                "{}{}",
                char::from(b'0' + channel % 10),
                STANDARD.encode(bytes)
            );
            send(writer, Opcode::Text, payload.as_bytes()).await
        }
    }
}

/// The channel of a message, and what it carries.
fn decode(coding: Coding, mut data: Vec<u8>) -> io::Result<(u8, Vec<u8>)> {
    let Some(first) = data.first().copied() else {
        return Err(broken("a message without a channel"));
    };
    data.remove(0);
    match coding {
        Coding::Binary => Ok((first, data)),
        Coding::Base64 => {
            let decoded = STANDARD.decode(&data).map_err(|_| broken("not base64"))?;
            Ok((first.wrapping_sub(b'0'), decoded))
        }
    }
}
