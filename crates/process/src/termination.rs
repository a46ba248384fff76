//! What a container says when it ends: the message in its status.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use kubewright_cluster::node::runtime::{ContainerConfig, Exit};

/// Most bytes of a termination message; the last ones count.
const LONGEST: u64 = 4 << 10;

/// Where the message of a container is, and what stands in for it.
#[derive(Debug)]
pub(crate) struct Message {
    file: PathBuf,
    fallback: Fallback,
}

/// What the message is when a container has failed and written none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fallback {
    Nothing,
    /// The end of its log.
    Log,
}

impl Message {
    pub(crate) fn of(config: &ContainerConfig, file: PathBuf) -> Self {
        let policy = config.container.termination_message_policy.as_deref();
        let fallback = if policy == Some("FallbackToLogsOnError") {
            Fallback::Log
        } else {
            Fallback::Nothing
        };
        Self { file, fallback }
    }

    /// Reads the message of a container that has ended. `last_lines` is the end of its log.
    pub(crate) fn add_to(self, mut exit: Exit, last_lines: &str) -> Exit {
        let written = self.read();
        if exit.message.is_some() {
            return exit;
        }
        exit.message = match (written.is_empty(), self.fallback) {
            (false, _) => Some(written),
            (true, Fallback::Log) if exit.code != 0 => Some(last_lines.to_owned()),
            (true, _) => None,
        };
        exit
    }

    /// The end of the file; nothing when it cannot be read.
    fn read(&self) -> String {
        let mut bytes = Vec::new();
        let read = File::open(&self.file).and_then(|mut file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(LONGEST)))?;
            file.take(LONGEST).read_to_end(&mut bytes)
        });
        if let Err(error) = read {
            tracing::debug!(%error, "a termination message could not be read");
        }
        // Nobody reads it again.
        let _ = std::fs::remove_file(&self.file);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
