//! Certificates without anybody's help: the manager makes its own, keeps them in a Secret that its replicas share, tells API
//! servers whom to trust, and replaces them in time.
//!
//! Guarantees: replicas serve one certificate, since whatever a replica wants to change it writes over the version of the
//! Secret that it has read, and the first to write wins; a certificate is served only after everything that calls it has
//! been found to trust its authority; connections live on when a certificate is replaced. Deliberately absent: the key of
//! an authority, which is thrown away once it has signed its one certificate.

mod inject;
mod issue;
mod options;
mod rotation;
mod secret;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use kubewright_cache::source::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Tls;
use crate::Error;
use crate::controller::Leadership;
use crate::environment::Environment;
use crate::manager::Runnable;
use inject::Own;
use options::REQUEST;
use rotation::{Phase, Stored, Trust, View};
use secret::{Keeper, Written, has_code};

pub use inject::TrustTarget;
pub use options::{CertificateError, CertificateOptions};

/// How long after a failure it is tried again at first.
const RETRY: Duration = Duration::from_millis(500);

/// What has become of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Nothing is left to do for now.
    Quiet,
    /// Something was changed, and what follows from it is next.
    Changed,
    /// Some objects do not trust the certificate yet.
    Incomplete,
}

/// The certificates of one operator. Run it with the manager, on every replica: webhooks are served by all of them.
pub struct Certificates {
    kube: kube::Client,
    secret: Keeper,
    options: CertificateOptions,
    environment: Environment,
    tls: Tls,
    /// The certificate that `tls` serves, in PEM.
    served: String,
    /// Why this replica is not ready; nothing once it has been.
    unready: Arc<Mutex<Option<String>>>,
}

impl Certificates {
    /// Finds the certificate of this operator, or makes it. It can be served when this returns.
    ///
    /// # Errors
    /// When no certificate can be served within the patience of the options; the error has the last reason.
    pub async fn prepare(
        kube: kube::Client,
        options: CertificateOptions,
        environment: Environment,
    ) -> Result<Self, CertificateError> {
        let secret = Keeper::new(kube.clone(), &options);
        let until = Instant::now() + options.patience;
        let mut pause = RETRY;
        loop {
            let failed = match first(&secret, &options, &environment).await {
                Ok(stored) => {
                    let (tls, served) = serve(&stored)?;
                    let unready = "configurations are not known to trust the certificate yet";
                    return Ok(Self {
                        kube,
                        secret,
                        options,
                        environment,
                        tls,
                        served,
                        unready: Arc::new(Mutex::new(Some(unready.to_owned()))),
                    });
                }
                Err(failed) => failed,
            };
            if Instant::now() + pause >= until {
                return Err(failed);
            }
            tracing::warn!(error = %Error::from(failed).report(), "no certificate yet; trying again");
            sleep(environment.jitter(pause, 0.2)).await;
            pause = (pause * 2).min(REQUEST);
        }
    }

    /// What a listener serves with: always the certificate of the moment.
    pub fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// A check of readiness: whether everything that calls this operator has been found to trust it, once.
    pub fn readiness(&self) -> impl Fn() -> Result<(), String> + Send + Sync + use<> {
        let unready = self.unready.clone();
        move || unready.lock().clone().map_or(Ok(()), Err)
    }

    /// Runs until it is asked to stop. Nothing that fails ends it: what is served is served on.
    async fn follow(mut self, stop: CancellationToken) {
        let mut pause = RETRY;
        loop {
            let next = match self.round().await {
                Ok(Round::Changed) => Duration::ZERO,
                Ok(Round::Quiet) => {
                    pause = RETRY;
                    self.environment.jitter(self.options.settle / 10, 0.2)
                }
                Ok(Round::Incomplete) => self.back_off(&mut pause),
                Err(error) => {
                    tracing::warn!(error = %Error::from(error).report(), "certificates could not be looked after");
                    self.back_off(&mut pause)
                }
            };
            tokio::select! {
                biased; // A stop is worth more than another round.
                () = stop.cancelled() => return,
                () = sleep(next) => {}
            }
        }
    }

    fn back_off(&self, pause: &mut Duration) -> Duration {
        let now = *pause;
        *pause = (now * 2).min(self.options.settle / 10).max(RETRY);
        self.environment.jitter(now, 0.2)
    }

    /// One look at everything: serve what is stored, have it trusted, and store what comes next.
    async fn round(&mut self) -> Result<Round, CertificateError> {
        let secret = self.secret.read().await?;
        let stored = secret::stored(&secret);
        let trust = match &stored {
            Some(stored) => {
                self.serve(stored)?;
                self.inject(stored).await
            }
            None => Trust::Incomplete,
        };
        let decided = decide(stored.as_ref(), trust, &self.options, &self.environment)?;
        match decided {
            None if trust == Trust::Everywhere => Ok(Round::Quiet),
            None => Ok(Round::Incomplete),
            Some(next) => {
                tell(&next);
                let written = self.secret.write(secret, &next).await?;
                if written == Written::Mine {
                    self.serve(&next)?;
                }
                Ok(Round::Changed)
            }
        }
    }

    /// Serves what is stored from the next connection on.
    fn serve(&mut self, stored: &Stored) -> Result<(), CertificateError> {
        let served = &stored.served;
        if self.served != served.certificate {
            let replaced = self
                .tls
                .replace(served.certificate.as_bytes(), served.key.as_bytes());
            replaced.map_err(CertificateError::Serve)?;
            self.served.clone_from(&served.certificate);
        }
        Ok(())
    }

    /// Has every object trust the bundle, and says whether all did before this call.
    async fn inject(&self, stored: &Stored) -> Trust {
        let bundle = STANDARD.encode(stored.bundle());
        let mut trust = Trust::Everywhere;
        let mut failed = None;
        for target in &self.options.targets {
            match self.inject_into(target, &bundle).await {
                Ok(Trusts::Already) => {}
                // One that is deployed later is found by a round to come.
                Ok(Trusts::Now | Trusts::Absent) => trust = Trust::Incomplete,
                Err(error) => {
                    let (what, error) = (target.describe(), Error::from(error).report());
                    tracing::warn!(target = %what, %error, "the certificate is not trusted there");
                    failed = Some(format!("{what}: {error}"));
                    trust = Trust::Incomplete;
                }
            }
        }
        let mut unready = self.unready.lock();
        if unready.is_some() {
            *unready = failed;
        }
        trust
    }

    async fn inject_into(&self, target: &TrustTarget, bundle: &str) -> Result<Trusts, InjectError> {
        let path = target.path();
        let got = Request::get(&path).body(Vec::new());
        let object: Value = match self.send(got).await {
            Err(InjectError::Refused(error)) if has_code(&error, 404) => return Ok(Trusts::Absent),
            got => got?,
        };
        let own = Own {
            namespace: &self.options.namespace,
            services: &self.options.services,
        };
        let Some(patch) = inject::patch(&object, own, bundle) else {
            return Ok(Trusts::Already);
        };
        let manager = encoded(&self.options.field_manager);
        let request = Request::patch(format!("{path}?fieldManager={manager}"))
            .header("content-type", "application/json-patch+json")
            .body(patch.to_string().into_bytes());
        match self.send(request).await {
            // Another replica says the same, or somebody something else: the next round finds out.
            Err(InjectError::Refused(error)) if has_code(&error, 409) => return Ok(Trusts::Now),
            sent => sent?,
        };
        tracing::info!(target = %target.describe(), "trusts the certificate of this operator now");
        Ok(Trusts::Now)
    }

    async fn send(
        &self,
        request: Result<Request<Vec<u8>>, http::Error>,
    ) -> Result<Value, InjectError> {
        let request = request.map_err(|error| InjectError::Name(error.to_string()))?;
        let answer = timeout(REQUEST, self.kube.request(request)).await;
        let answer = answer.map_err(|_| InjectError::Silent)?;
        answer.map_err(|error| InjectError::Refused(Box::new(error)))
    }
}

/// A text as a part of a query, where letters, digits and `-._~` stand for themselves.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(encode).collect()
}

/// Whether an object trusts the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trusts {
    Already,
    Now,
    Absent,
}

/// Why an object does not trust the certificate.
#[derive(Debug, thiserror::Error)]
enum InjectError {
    #[error("it has no name that can be asked for: {0}")]
    Name(String),
    #[error("the API server did not answer within {REQUEST:?}")]
    Silent,
    #[error("the API server refused")]
    Refused(#[source] Box<kube::Error>),
}

/// What is stored, after something has been stored for the first time.
async fn first(
    secret: &Keeper,
    options: &CertificateOptions,
    environment: &Environment,
) -> Result<Stored, CertificateError> {
    loop {
        let found = secret.read().await?;
        let stored = secret::stored(&found);
        let now = environment.now().as_second();
        let usable =
            |stored: &Stored| stored.served.names == options.names() && stored.served.expires > now;
        match stored {
            Some(stored) if usable(&stored) => return Ok(stored),
            stored => {
                let next = decide(stored.as_ref(), Trust::Incomplete, options, environment)?;
                if let Some(next) = next {
                    tell(&next);
                    secret.write(found, &next).await?;
                }
            }
        }
    }
}

fn serve(stored: &Stored) -> Result<(Tls, String), CertificateError> {
    let served = &stored.served;
    let tls = Tls::from_pem(served.certificate.as_bytes(), served.key.as_bytes());
    Ok((
        tls.map_err(CertificateError::Serve)?,
        served.certificate.clone(),
    ))
}

fn decide(
    stored: Option<&Stored>,
    trust: Trust,
    options: &CertificateOptions,
    environment: &Environment,
) -> Result<Option<Stored>, CertificateError> {
    let (names, now) = (options.names(), environment.now().as_second());
    let view = View {
        now,
        names: &names,
        trust,
        settle: options.settle,
    };
    rotation::decide(stored, view, || issue::issue(&names, now, options.lifetime))
        .map_err(|error| CertificateError::Issue(error.to_string()))
}

fn tell(next: &Stored) {
    let what = match &next.phase {
        Phase::Settled => "one authority is trusted",
        Phase::Introducing { .. } => "the authority of the next certificate is to be trusted",
        Phase::Retiring { .. } => "the next certificate is served",
    };
    tracing::info!(served = ?next.served, "certificates: {what}");
}

impl Runnable for Certificates {
    fn run(self: Box<Self>, stop: CancellationToken) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            self.follow(stop).await;
            Ok(())
        })
    }

    fn leadership(&self) -> Leadership {
        Leadership::NotNeeded
    }

    fn describe(&self) -> String {
        "certificates".to_owned()
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Certificates({}/{})",
            self.options.namespace, self.options.secret
        )
    }
}

#[cfg(test)]
mod tests;
