//! What one JSON patch may cost.

use std::io;

use serde_json::Value;

use super::OperationError;

/// How many bytes of JSON all `copy` operations may add together.
pub(super) const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// How many values all operations may shift or walk together; well under a second of work.
const MAX_WORK: usize = 64 * 1024 * 1024;

/// What is left to spend.
pub(super) struct Budget {
    copied_bytes: usize,
    work: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            copied_bytes: MAX_COPIED_BYTES,
            work: MAX_WORK,
        }
    }
}

impl Budget {
    /// Pays for a copy before it is made.
    pub(super) fn spend_copy(&mut self, value: &Value) -> Result<(), OperationError> {
        let mut counter = Counter {
            left: self.copied_bytes,
        };
        serde_json::to_writer(&mut counter, value).map_err(|_| OperationError::CopyLimit)?;
        self.copied_bytes = counter.left;
        Ok(())
    }

    /// Pays for shifting or walking this many values.
    pub(super) fn spend_work(&mut self, values: usize) -> Result<(), OperationError> {
        self.work = self
            .work
            .checked_sub(values)
            .ok_or(OperationError::WorkLimit)?;
        Ok(())
    }
}

/// Counts bytes down and fails below zero, so that an oversized value is not measured to its end.
struct Counter {
    left: usize,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
