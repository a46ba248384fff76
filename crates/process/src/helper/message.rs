//! What the runtime and its helper tell each other: frames of JSON over a socket, and descriptors before them.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Largest frame: an environment and a list of mounts, with room to spare.
pub(crate) const LARGEST_FRAME: usize = 16 << 20;

/// What the helper starts, and how.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The program, looked up in the `PATH` of the environment when it has no slash.
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) directory: String,
    /// Files of control groups that the program is a member of.
    pub(crate) groups: Vec<PathBuf>,
    /// The terminal of the program, if it has one.
    pub(crate) terminal: Option<PathBuf>,
    pub(crate) identity: Identity,
    /// The file system that it sees; nothing for the machine's.
    pub(crate) root: Option<Root>,
}

/// The file system of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Root {
    /// An empty directory to work in.
    pub(crate) place: PathBuf,
    /// The layers, the topmost first.
    pub(crate) lower: Vec<PathBuf>,
    /// Where changes go; into memory when there is nothing.
    pub(crate) upper: Option<PathBuf>,
    /// Whether the layer is the file system of this machine.
    pub(crate) machine: bool,
    /// Whether this happens in a user namespace.
    pub(crate) user_namespace: bool,
    pub(crate) writable: Writable,
    pub(crate) hostname: String,
    /// Volumes and files that the node provides, in their order.
    pub(crate) mounts: Vec<Mount>,
    /// Directories of the machine that the container does not see.
    pub(crate) hidden: Vec<PathBuf>,
}

/// Something that is mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) source: Source,
    pub(crate) target: String,
    pub(crate) writable: Writable,
}

/// What is mounted into a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Source {
    /// A file or directory of the machine, or a part of it.
    Path { path: PathBuf, part: Option<String> },
    /// Memory, up to a size.
    Memory { size: Option<u64> },
}

/// Whether a container may write to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) enum Writable {
    #[default]
    Yes,
    No,
}

/// Who the program runs as.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) groups: Vec<u32>,
}

/// What the runtime asks of a helper whose program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Sends a signal to the program.
    Signal(i32),
    /// Ends everything at once.
    Kill,
}

/// What a helper reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The first process in the namespaces of the container, as the machine counts.
    Contained(u32),
    /// The program has been started.
    Started,
    /// The program could not be started.
    Failed(String),
    /// The program has exited with a code.
    Exited(i32),
    /// A signal has ended the program.
    Killed(i32),
}

/// Sends the descriptors that a helper needs, before anything else: one byte says how many.
pub(crate) fn send_descriptors(socket: &UnixStream, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let count = [u8::try_from(fds.len()).unwrap_or(u8::MAX)];
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(&count)],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Receives what [`send_descriptors`] sent.
pub(crate) fn receive_descriptors(socket: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut count = [0u8];
    let received = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut count)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if fds.len() != usize::from(count[0]) {
        return Err(io::Error::other("a descriptor was lost on the way"));
    }
    Ok(fds)
}

/// A value as a frame: four bytes of length, and JSON.
pub(crate) fn frame<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(value)?;
    let length = u32::try_from(body.len()).map_err(|_| too_large())?;
    if body.len() > LARGEST_FRAME {
        return Err(too_large());
    }
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend(body);
    Ok(frame)
}

/// The length of a body, from the four bytes before it.
pub(crate) fn body_length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = usize::try_from(u32::from_be_bytes(prefix)).map_err(|_| too_large())?;
    if length > LARGEST_FRAME {
        return Err(too_large());
    }
    Ok(length)
}

/// Reads a frame; nothing at the end of the stream.
pub(crate) fn read<T: DeserializeOwned>(mut from: impl Read) -> io::Result<Option<T>> {
    let mut prefix = [0; 4];
    match from.read_exact(&mut prefix) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut body = vec![0; body_length(prefix)?];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}

/// Writes a value as a frame.
pub(crate) fn write<T: Serialize>(mut to: impl Write, value: &T) -> io::Result<()> {
    to.write_all(&frame(value)?)
}

fn too_large() -> io::Error {
    io::Error::other("a message between the runtime and its helper is too large")
}
