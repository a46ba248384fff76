//! Decides what happens to a certificate and when. Pure: time and what was observed come in, what is to be stored comes out.
//!
//! A certificate is replaced in two moves, so that no request meets an authority that the API server does not trust:
//!
//! ```text
//! Settled ── two thirds of its life are over ──→ Introducing   both authorities trusted, the old certificate served
//! Introducing ── trusted everywhere, settled ──→ Retiring      both authorities trusted, the new certificate served
//! Retiring ── settled ─────────────────────────→ Settled       the old authority is trusted no longer
//! ```

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A serving certificate and the authority that signed it, in PEM. The authority signs one certificate and its key is then
/// thrown away, so that nothing that is stored can sign another.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issued {
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: String,
    /// The names that it is valid for.
    pub(super) names: Vec<String>,
    /// Seconds since 1970 at which it was issued, and after which it is not valid.
    pub(super) issued: i64,
    pub(super) expires: i64,
}

/// What all replicas share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) served: Issued,
    pub(super) phase: Phase,
}

/// How far a replacement is. `since` are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// One authority is trusted.
    Settled,
    /// The authority of the next certificate is trusted besides the one that is served.
    Introducing { next: Issued, since: i64 },
    /// The next certificate is served; the authority of the one before is still trusted.
    Retiring { authority: String, since: i64 },
}

/// Whether every configuration trusts all authorities that it should, as it was before this round changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Everywhere,
    Incomplete,
}

/// What a decision depends on besides what is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) now: i64,
    pub(super) names: &'a [String],
    pub(super) trust: Trust,
    /// How long everybody is given to notice a change.
    pub(super) settle: Duration,
}

impl Stored {
    /// The authorities that are to be trusted, in PEM: that of the served certificate first.
    pub(super) fn bundle(&self) -> String {
        let other = match &self.phase {
            Phase::Settled => "",
            Phase::Introducing { next, .. } => &next.authority,
            Phase::Retiring { authority, .. } => authority,
        };
        format!("{}{other}", self.served.authority)
    }
}

/// What is to be stored instead of what is, or nothing if it can stay. `issue` makes a new certificate.
pub(super) fn decide<E>(
    stored: Option<&Stored>,
    view: View<'_>,
    issue: impl FnOnce() -> Result<Issued, E>,
) -> Result<Option<Stored>, E> {
    let settled = |served| Stored {
        served,
        phase: Phase::Settled,
    };
    let Some(stored) = stored else {
        return issue().map(|first| Some(settled(first)));
    };
    let served = &stored.served;
    if served.names != view.names {
        // A Service of another name: the old certificate answers nobody, so there is nothing to wait for.
        return issue().map(|next| Some(retiring(next, served.authority.clone(), view.now)));
    }
    let has_settled = |since: i64| view.now >= since.saturating_add(seconds(view.settle));
    let is_expired = view.now >= served.expires;
    Ok(match &stored.phase {
        Phase::Settled | Phase::Retiring { .. } if is_expired => Some(settled(issue()?)),
        Phase::Settled if view.now >= renew_at(served) => Some(Stored {
            served: served.clone(),
            phase: Phase::Introducing {
                next: issue()?,
                since: view.now,
            },
        }),
        Phase::Introducing { next, since } => {
            let trusted = view.trust == Trust::Everywhere && has_settled(*since);
            let promoted = || retiring(next.clone(), served.authority.clone(), view.now);
            (trusted || is_expired).then(promoted)
        }
        Phase::Retiring { since, .. } if has_settled(*since) => Some(settled(served.clone())),
        Phase::Settled | Phase::Retiring { .. } => None,
    })
}

fn retiring(served: Issued, authority: String, since: i64) -> Stored {
    Stored {
        served,
        phase: Phase::Retiring { authority, since },
    }
}

/// When two thirds of its life are over: a month of attempts is left of three.
fn renew_at(issued: &Issued) -> i64 {
    let life = issued.expires.saturating_sub(issued.issued);
    issued.issued.saturating_add(life / 3 * 2)
}

/// Whole seconds, rounded up.
pub(super) fn seconds(duration: Duration) -> i64 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i64::try_from(whole).unwrap_or(i64::MAX)
}

impl fmt::Debug for Issued {
    /// Says nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Issued({:?}, {}..{})",
            self.names, self.issued, self.expires
        )
    }
}
