//! CertificateSigningRequests: kubelets' are approved, approved ones are signed, old ones are deleted. Mirrors
//! pkg/controller/certificates: `approver`, `signer` and `cleaner`.

mod rules;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use kube::api::PostParams;
use kubewright_runtime::{Context, Controller, Delete, Error, IgnoreNotFound, Outcome, Reconciler};
use kubewright_server::{CertificateRequest, CertificateSigner};
use serde_json::json;

use self::rules::{Verdict, add, due, has, is_issued, lifetime, permissions, verify};
use crate::writes::report;

/// Approves what kubelets ask for, if they may.
pub(crate) fn approver() -> Controller {
    Controller::of::<CertificateSigningRequest>("csrapproving").reconciler(Approver)
}

/// Signs what is approved.
pub(crate) fn signer(signer: CertificateSigner) -> Controller {
    Controller::of::<CertificateSigningRequest>("csrsigning").reconciler(Signer { signer })
}

/// Deletes requests that are old.
pub(crate) fn cleaner() -> Controller {
    Controller::of::<CertificateSigningRequest>("csrcleaner").reconciler(Cleaner)
}

struct Approver;

impl Reconciler<CertificateSigningRequest> for Approver {
    async fn reconcile(
        &self,
        request: Arc<CertificateSigningRequest>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        if is_issued(&request) || has(&request, "Approved") || has(&request, "Denied") {
            return Ok(Outcome::done());
        }
        let Ok(asked) = CertificateRequest::parse(&request.spec.request.0) else {
            return Ok(Outcome::done());
        };
        let spec = &request.spec;
        let (user, usages) = (spec.username.as_deref(), spec.usages.as_deref());
        let (user, usages) = (user.unwrap_or_default(), usages.unwrap_or_default());
        for (part, message) in permissions(user, &spec.signer_name, &asked, usages) {
            if !may(&request, part, cx).await? {
                continue;
            }
            let mut approved = (*request).clone();
            add(
                &mut approved,
                ("Approved", "AutoApproved"),
                message,
                cx.now(),
            );
            let requests = cx.client().of::<CertificateSigningRequest>();
            let written = requests.update_subresource(cx.key(), "approval", &approved);
            written.await.ignore_not_found()?;
            return Ok(Outcome::done());
        }
        Ok(Outcome::done())
    }
}

/// Whether whoever asks may have it without being asked (sarapprove.go: `authorize`).
async fn may(request: &CertificateSigningRequest, part: &str, cx: &Context) -> Result<bool, Error> {
    let spec = &request.spec;
    let review = json!({"spec": {
        "user": spec.username, "uid": spec.uid, "groups": spec.groups, "extra": spec.extra,
        "resourceAttributes": {
            "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create",
            "subresource": part, "version": "*",
        },
    }});
    let review: SubjectAccessReview = serde_json::from_value(review)?;
    let reviews: Api<SubjectAccessReview> = Api::all(cx.client().kube().clone());
    let answer = reviews.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

struct Signer {
    signer: CertificateSigner,
}

impl Reconciler<CertificateSigningRequest> for Signer {
    async fn reconcile(
        &self,
        request: Arc<CertificateSigningRequest>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let waits = has(&request, "Approved") && !has(&request, "Failed");
        if !waits || has(&request, "Denied") || is_issued(&request) {
            return Ok(Outcome::done());
        }
        let spec = &request.spec;
        let Ok(asked) = CertificateRequest::parse(&spec.request.0) else {
            return Ok(Outcome::done());
        };
        let usages = spec.usages.as_deref().unwrap_or_default();
        let certificate = match verify(&spec.signer_name, &asked, usages) {
            Verdict::NotOurs => return Ok(Outcome::done()),
            Verdict::Refuse(why) => Err(why),
            Verdict::Sign => {
                Ok(self
                    .signer
                    .sign(&asked, usages, lifetime(spec.expiration_seconds))?)
            }
        };
        report(cx.client(), &*request, |request| match &certificate {
            Ok(pem) => {
                let status = request.status.get_or_insert_default();
                status.certificate = Some(ByteString(pem.clone().into_bytes()));
            }
            Err(why) => add(
                request,
                ("Failed", "SignerValidationFailure"),
                why,
                cx.now(),
            ),
        })
        .await?;
        Ok(Outcome::done())
    }
}

struct Cleaner;

impl Reconciler<CertificateSigningRequest> for Cleaner {
    async fn reconcile(
        &self,
        request: Arc<CertificateSigningRequest>,
        cx: &Context,
    ) -> Result<Outcome, Error> {
        let Some(due) = due(&request) else {
            return Ok(Outcome::done());
        };
        let wait = Duration::try_from(due.duration_since(cx.now())).unwrap_or_default();
        if !wait.is_zero() {
            return Ok(Outcome::requeue_after(wait));
        }
        let deleted = cx.client().delete(&*request, Delete::background()).await;
        deleted.ignore_not_found()?;
        Ok(Outcome::done())
    }
}
