//! A pseudoterminal: the end that people type at.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use kubewright_server::TerminalSize;
use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use rustix::termios::Winsize;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Mutex;

/// The end that people type at. A read waits in a thread, which ends with the program at the other end.
#[derive(Debug)]
pub(crate) struct Terminal {
    master: std::fs::File,
    reader: Mutex<File>,
    writer: Mutex<File>,
    /// The device that a program opens.
    pub(crate) path: PathBuf,
}

impl Terminal {
    /// Opens a new terminal.
    pub(crate) fn open() -> io::Result<Self> {
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let path = PathBuf::from(ptsname_r(&master)?);
        let master = std::fs::File::from(OwnedFd::from(master));
        Ok(Self {
            reader: Mutex::new(File::from_std(master.try_clone()?)),
            writer: Mutex::new(File::from_std(master.try_clone()?)),
            master,
            path,
        })
    }

    /// Sets the size in characters.
    pub(crate) fn resize(&self, size: TerminalSize) {
        let size = Winsize {
            ws_row: size.height,
            ws_col: size.width,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // A terminal whose program has gone has no size.
        let _ = rustix::termios::tcsetwinsize(&self.master, size);
    }

    /// Reads what the program wrote; nothing when it has gone.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        let count = self.reader.lock().await.read(buffer).await.ok()?;
        (count > 0).then_some(count)
    }

    /// Writes what somebody typed.
    ///
    /// # Errors
    /// When the program has gone.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        writer.write_all(bytes).await?;
        writer.flush().await
    }
}
