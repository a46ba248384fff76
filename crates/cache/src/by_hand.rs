//! Lists and watches step by step, for those who want no reflector.

use std::sync::Arc;
use std::time::Duration;

use crate::delta::Delta;
use crate::frames::{Line, Lines};
use crate::intake::{Intake, WatchEvent};
use crate::object::Object;
use crate::reflector::{SILENCE, heard, read_page};
use crate::report::Reporter;
use crate::shape::Shape;
use crate::source::{Failure, FailureKind, ListRequest, Source, WatchRequest};

/// Everything there is, at one version.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Listed {
    /// The objects, in the order of the server.
    pub objects: Vec<Arc<Object>>,
    /// The version to watch from.
    pub resource_version: String,
}

/// Lists the newest state, page by page. Objects that cannot be read are reported and left out.
///
/// # Errors
/// When a page fails. Nothing is tried again.
pub async fn list(
    source: &impl Source,
    shape: Shape,
    reporter: Reporter,
) -> Result<Listed, Failure> {
    let intake = Intake::new(shape, reporter);
    let mut listed = Listed::default();
    let mut request = ListRequest {
        limit: 500,
        ..ListRequest::default()
    };
    loop {
        let chunks = heard(SILENCE, source.list(request.clone())).await?;
        let page = read_page(chunks, &intake, SILENCE).await?;
        listed.objects.extend(page.objects);
        if listed.resource_version.is_empty() {
            listed.resource_version = page.resource_version;
        }
        if page.continue_token.is_empty() {
            return Ok(listed);
        }
        request.continue_token = page.continue_token;
    }
}

/// Watches for changes after a version.
///
/// # Errors
/// When the watch cannot be opened.
pub async fn watch(
    source: &impl Source,
    resource_version: &str,
    shape: Shape,
    reporter: Reporter,
) -> Result<Watch, Failure> {
    let request = WatchRequest {
        resource_version: resource_version.to_owned(),
        timeout: Duration::from_secs(300),
        ..WatchRequest::default()
    };
    Ok(Watch {
        lines: Lines::new(heard(SILENCE, source.watch(request)).await?),
        intake: Intake::new(shape, reporter),
    })
}

/// An open watch, which is read change by change with [`Watch::next`].
pub struct Watch {
    lines: Lines,
    intake: Intake,
}

impl Watch {
    /// The next change or bookmark; nothing when the server ends the watch.
    ///
    /// # Errors
    /// When the connection breaks or the server reports an error, such as an expired version. The watch is over then.
    pub async fn next(&mut self) -> Option<Result<Delta, Failure>> {
        loop {
            let event = match self.lines.next().await? {
                Ok(Line::Whole(line)) => self.intake.event(&line),
                // A last line may lack its newline; half a line is a broken connection.
                Ok(Line::Unfinished(line)) => self.intake.event(&line).map_err(|_| {
                    let message = "the watch ended in the middle of a line";
                    Failure::new(FailureKind::Interrupted, message)
                }),
                Err(failure) => Err(failure),
            };
            match event {
                Ok(WatchEvent::Skipped) => {}
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    return Some(Ok(Delta::Apply(object)));
                }
                Ok(WatchEvent::Deleted(object)) => return Some(Ok(Delta::Delete(object))),
                Ok(WatchEvent::Bookmark {
                    resource_version, ..
                }) => return Some(Ok(Delta::Bookmark(resource_version))),
                Ok(WatchEvent::Error(failure)) | Err(failure) => return Some(Err(failure)),
            }
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
