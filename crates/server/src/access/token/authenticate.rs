//! Who a token is: its signature, its time, its audience, and whether what it stands for is still there.

use std::collections::BTreeMap;

use jiff::Timestamp;
use memchr::memmem;

use super::claims::{Claims, Reference};
use super::{Issuer, Refusal};
use crate::access::{service_account_groups, service_account_name};
use crate::auth::User;
use crate::environment::Environment;
use crate::object;
use crate::registry::Registry;
use crate::storage::Record;

/// How far clocks may be apart, in seconds.
const LEEWAY: i64 = 60;

/// A token that is good.
pub(crate) struct Accepted {
    pub(crate) user: User,
    /// Those of the wanted audiences that the token is for.
    pub(crate) audiences: Vec<String>,
}

/// What tokens are checked against.
#[derive(Clone, Copy)]
pub(crate) struct TokenChecker<'a> {
    pub(crate) issuer: &'a Issuer,
    pub(crate) registry: &'a Registry,
    pub(crate) environment: &'a Environment,
}

impl TokenChecker<'_> {
    /// The user of a service account's token that is meant for this server.
    pub(crate) fn service_account(&self, token: &str) -> Option<User> {
        match self.check_token(token, std::slice::from_ref(&self.issuer.name)) {
            Ok(accepted) => Some(accepted.user),
            Err(refusal) => {
                tracing::debug!(%refusal, "token refused");
                None
            }
        }
    }

    /// Whether a token is good for any of these audiences.
    pub(crate) fn check_token(&self, token: &str, wanted: &[String]) -> Result<Accepted, Refusal> {
        let claims = self.issuer.verify(token)?;
        let audiences: Vec<String> = claims
            .audiences
            .iter()
            .filter(|audience| wanted.contains(audience))
            .cloned()
            .collect();
        if audiences.is_empty() {
            let quoted = crate::access::rule::quoted;
            let (own, wanted) = (quoted(&claims.audiences), quoted(wanted));
            return Err(Refusal::invalid(format!(
                "token audiences {own} is invalid for the target audiences {wanted}"
            )));
        }
        let now = self.environment.now();
        check_time(&claims, now)?;
        self.check_objects(&claims, now)?;
        Ok(Accepted {
            user: user(&claims),
            audiences,
        })
    }

    /// What the token stands for must be there, and be what it was.
    fn check_objects(&self, claims: &Claims, now: Timestamp) -> Result<(), Refusal> {
        let bound = &claims.bound;
        let namespace = Some(bound.namespace.as_str());
        let account = &bound.service_account;
        if !self.is_there("serviceaccounts", namespace, account, now) {
            return Err(Refusal::invalid(format!(
                "service account {}/{} has been deleted",
                bound.namespace, account.name
            )));
        }
        let good = match (&bound.secret, &bound.pod, &bound.node) {
            (Some(secret), _, _) => self.is_there("secrets", namespace, secret, now),
            // The node of a pod is reported, but not checked.
            (None, Some(pod), _) => self.is_there("pods", namespace, pod, now),
            (None, None, Some(node)) => self.is_there("nodes", None, node, now),
            (None, None, None) => true,
        };
        if good {
            Ok(())
        } else {
            Err(Refusal::invalid(
                "service account token has been invalidated",
            ))
        }
    }

    fn is_there(
        &self,
        plural: &str,
        namespace: Option<&str>,
        reference: &Reference,
        now: Timestamp,
    ) -> bool {
        let served = self.registry.now().builtin("", "v1", plural);
        let record = served
            .collection
            .get(&served.key(namespace, &reference.name));
        record.is_some_and(|record| record.uid() == reference.uid && !is_gone(&record, now))
    }
}

fn check_time(claims: &Claims, now: Timestamp) -> Result<(), Refusal> {
    let now = now.as_second();
    if now.saturating_sub(LEEWAY) > claims.expires {
        return Err(Refusal::invalid("service account token has expired"));
    }
    if now.saturating_add(LEEWAY) < claims.not_before {
        return Err(Refusal::invalid("service account token is not valid yet"));
    }
    if now.saturating_add(LEEWAY) < claims.issued {
        return Err(Refusal::invalid(
            "service account token is issued in the future",
        ));
    }
    Ok(())
}

/// Whether an object was deleted a while ago, though something still holds it.
fn is_gone(record: &Record, now: Timestamp) -> bool {
    // Objects are rarely on their way out: most are not taken apart for this.
    let pattern = br#""deletionTimestamp":""#;
    if memmem::find(record.body(), pattern).is_none() {
        return false;
    }
    let Ok(value) = serde_json::from_slice(record.body()) else {
        return true;
    };
    match object::meta_str(&value, "deletionTimestamp").parse::<Timestamp>() {
        Ok(deleted) => deleted.as_second() < now.as_second().saturating_sub(LEEWAY),
        Err(_) => object::is_deleting(&value),
    }
}

fn user(claims: &Claims) -> User {
    let bound = &claims.bound;
    let mut extra = BTreeMap::new();
    let mut tell = |key: &str, value: &str| {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{key}");
            extra.insert(key, vec![value.to_owned()]);
        }
    };
    tell("credential-id", &format!("JTI={}", claims.id));
    for (kind, reference) in [("pod", &bound.pod), ("node", &bound.node)] {
        if let Some(reference) = reference {
            tell(&format!("{kind}-name"), &reference.name);
            tell(&format!("{kind}-uid"), &reference.uid);
        }
    }
    let name = service_account_name(&bound.namespace, &bound.service_account.name);
    User {
        uid: bound.service_account.uid.clone(),
        extra,
        ..User::new(name, service_account_groups(&bound.namespace))
    }
    .authenticated()
}
