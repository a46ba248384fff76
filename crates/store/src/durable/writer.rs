//! The thread that owns the log: one write and one force for all changes that wait, images now and then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tokio::time::Instant;

use super::directory::{Directory, failed};
use super::image::Frozen;
use super::journal::{BLOCK, Shared, Work};
use super::segment::Segment;
use super::watermark::{Mark, Watermark};
use super::{Fsync, OpenError, OpenOptions, Recovered, entry, image};

/// Segments that may pile up, one with each opening, before an image replaces them.
const MAX_SEGMENTS: usize = 16;
/// Larger buffers are given back after use.
const KEEP_BUFFER: usize = 1 << 20;

/// Everything that the thread owns.
#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    directory: Arc<Directory>,
    pub(super) segment: Segment,
    /// None where nothing is forced to the disk.
    watermark: Option<Watermark>,
    fsync: Fsync,
    /// The last revision that was written.
    revision: u64,
    reserved: u64,
    /// When written records must be forced to the disk.
    sync_due: Option<Instant>,
    /// Bytes of log since the last image, and how many call for another.
    log_bytes: u64,
    image_after: u64,
    images: Images,
    buffer: Vec<u8>,
}

/// The image that is being written, if one is.
#[derive(Debug, Default)]
struct Images {
    running: Option<JoinHandle<Option<u64>>>,
    call_off: Arc<AtomicBool>,
    /// Bytes of log that call for an image.
    least: u64,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        recovered: Recovered,
        options: &OpenOptions,
        reserved: u64,
    ) -> Result<Self, OpenError> {
        let Recovered {
            directory,
            next_segment,
            last_length,
            ..
        } = recovered;
        let path = directory.segment(next_segment);
        let segment = Segment::create(&directory, next_segment, reserved, last_length)
            .map_err(failed("creating", &path))?;
        let mark = Mark {
            sequence: next_segment,
            length: segment.length,
            reserved,
        };
        let watermark = Watermark::create(&directory, mark)
            .map_err(failed("creating", &directory.watermark()))?;
        let many = recovered.recovery.segments >= MAX_SEGMENTS;
        Ok(Self {
            shared,
            directory: Arc::new(directory),
            segment,
            watermark,
            fsync: options.fsync,
            revision: recovered.recovery.revision,
            reserved,
            sync_due: None,
            log_bytes: if many { u64::MAX } else { recovered.log_bytes },
            image_after: options.image_after.max(recovered.image_bytes),
            images: Images {
                least: options.image_after,
                ..Images::default()
            },
            buffer: Vec::new(),
        })
    }

    /// Writes until the end has come or the disk has failed.
    pub(super) fn run(mut self, freeze: &dyn Fn() -> Frozen) {
        if let Err(error) = self.write_all(freeze) {
            tracing::error!(%error, "the storage log cannot be written; the store is read-only now");
            self.shared.fail(&error.to_string());
        }
        self.images.call_off();
        tracing::debug!(revision = self.revision, "the storage log ends");
    }

    fn write_all(&mut self, freeze: &dyn Fn() -> Frozen) -> io::Result<()> {
        loop {
            self.make_image(freeze)?;
            let work = self.shared.wait(self.sync_due);
            self.write(&work)?;
            if work.ending && work.events.is_empty() {
                return self.close();
            }
        }
    }

    /// Writes a batch. A reservation goes with it when half of the last one is used up.
    fn write(&mut self, work: &Work) -> io::Result<()> {
        for (collection, event) in &work.events {
            entry::append_event(&mut self.buffer, collection, event);
            self.revision = event.revision();
        }
        let used_up = self.revision + BLOCK / 2 > self.reserved;
        if used_up {
            self.reserved = self.revision + BLOCK;
            entry::append_reserve(&mut self.buffer, self.reserved);
            // At once in every mode: its revisions are about to be seen.
            self.sync_due = Some(Instant::now());
        }
        self.flush()?;
        self.sync()?;
        self.shared.reserved(self.reserved);
        if !work.events.is_empty() {
            self.shared.durable(self.revision);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.segment.write(&self.buffer)?;
        self.log_bytes = self.log_bytes.saturating_add(self.buffer.len() as u64);
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_BUFFER);
        if let Fsync::Interval(interval) = self.fsync {
            self.sync_due
                .get_or_insert_with(|| Instant::now() + interval);
        }
        Ok(())
    }

    /// Forces to the disk what is due.
    fn sync(&mut self) -> io::Result<()> {
        let due = match self.fsync {
            Fsync::Interval(_) => self.sync_due.is_some_and(|due| due <= Instant::now()),
            // The directory knows that never means never.
            Fsync::Always | Fsync::Never => true,
        };
        if due { self.force() } else { Ok(()) }
    }

    /// Forces the log to the disk, then says so in the watermark.
    fn force(&mut self) -> io::Result<()> {
        self.directory.sync_file(&self.segment.file)?;
        self.sync_due = None;
        self.mark()
    }

    fn mark(&mut self) -> io::Result<()> {
        let mark = Mark {
            sequence: self.segment.sequence,
            length: self.segment.length,
            reserved: self.reserved,
        };
        let watermark = self.watermark.as_mut();
        watermark.map_or(Ok(()), |watermark| watermark.set(mark))
    }

    /// Everything is written: no revision beyond it needs to be skipped.
    fn close(&mut self) -> io::Result<()> {
        entry::append_close(&mut self.buffer, self.revision);
        self.flush()?;
        self.force()
    }

    /// Begins an image when the log has grown enough, one at a time. The log continues in a new segment first, so that
    /// all of the old ones is in memory when the image is taken.
    fn make_image(&mut self, freeze: &dyn Fn() -> Frozen) -> io::Result<()> {
        if let Some(bytes) = self.images.finished() {
            self.image_after = bytes.max(self.images.least);
        }
        if self.log_bytes < self.image_after || self.images.running.is_some() {
            return Ok(());
        }
        self.force()?;
        let sequence = self.segment.sequence + 1;
        let length = Some(self.segment.length);
        self.segment = Segment::create(&self.directory, sequence, self.reserved, length)?;
        self.mark()?;
        self.log_bytes = 0;
        self.images
            .begin(self.directory.clone(), freeze(), sequence)
    }
}

impl Images {
    fn begin(
        &mut self,
        directory: Arc<Directory>,
        frozen: Frozen,
        first_segment: u64,
    ) -> io::Result<()> {
        let call_off = self.call_off.clone();
        let thread = std::thread::Builder::new().name("storage-image".into());
        self.running = Some(thread.spawn(move || {
            // Without it the log is merely longer; the next one is tried when it has grown again.
            image::write(&directory, &frozen, first_segment, &call_off).unwrap_or_else(|error| {
                tracing::warn!(%error, "the storage image could not be written");
                None
            })
        })?);
        Ok(())
    }

    /// The size of an image that has been finished since the last call.
    fn finished(&mut self) -> Option<u64> {
        let running = self.running.take_if(|running| running.is_finished())?;
        running.join().ok().flatten()
    }

    fn call_off(&mut self) {
        self.call_off.store(true, Ordering::Relaxed);
        if self
            .running
            .take()
            .is_some_and(|running| running.join().is_err())
        {
            tracing::error!("the storage image's thread panicked");
        }
    }
}
