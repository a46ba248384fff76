//! Acting as somebody else: `Impersonate-User`, `-Group`, `-Uid` and `-Extra-*`, each thing allowed by the verb
//! `impersonate`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::HeaderMap;

use super::attributes::{Attributes, Resource, Subject};
use super::{Access, service_account_groups};
use kubewright_schema::names;

use crate::auth::{ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User};
use crate::http::path::{Plus, percent_decode};
use crate::status::ApiError;

const PREFIX: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whom a request wants to be.
#[derive(Default)]
struct Wanted {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// The user that a request wants to act as, if it names one and the caller may.
pub(crate) fn impersonate(
    access: &Access,
    caller: &User,
    headers: &HeaderMap,
) -> Result<Option<User>, ApiError> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(None);
    }
    let wanted = Wanted::read(headers)?;
    if wanted.user.is_empty() {
        return if wanted.is_empty() {
            Ok(None)
        } else {
            Err(ApiError::bad_request(format!(
                "requested {} without impersonating a user",
                wanted.spelled()
            )))
        };
    }
    wanted.check(access, caller)?;
    Ok(Some(wanted.become_user()))
}

impl Wanted {
    fn read(headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut wanted = Self::default();
        for (name, value) in headers {
            let name = name.as_str();
            if !name.starts_with(PREFIX) {
                continue;
            }
            let value = std::str::from_utf8(value.as_bytes())
                .map_err(|_| ApiError::bad_request(format!("header {name} is not UTF-8")))?
                .to_owned();
            match name {
                "impersonate-user" if wanted.user.is_empty() => wanted.user = value,
                "impersonate-uid" if wanted.uid.is_empty() => wanted.uid = value,
                "impersonate-group" => wanted.groups.push(value),
                _ => {
                    if let Some(key) = name.strip_prefix(EXTRA) {
                        let key = percent_decode(key, Plus::Literal).unwrap_or(key.into());
                        wanted
                            .extra
                            .entry(key.into_owned())
                            .or_default()
                            .push(value);
                    }
                }
            }
        }
        Ok(wanted)
    }

    fn is_empty(&self) -> bool {
        self.user.is_empty()
            && self.uid.is_empty()
            && self.groups.is_empty()
            && self.extra.is_empty()
    }

    /// What was asked for, as the API spells it in its refusal.
    fn spelled(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for group in &self.groups {
            parts.push(format!("{{Group  {group}    }}"));
        }
        for (key, values) in &self.extra {
            for value in values {
                parts.push(format!(
                    "{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}"
                ));
            }
        }
        if !self.uid.is_empty() {
            parts.push(format!("{{UID  {}  {AUTHENTICATION}/v1  }}", self.uid));
        }
        let mut text = String::new();
        let _ = write!(text, "[{}]", parts.join(" "));
        text
    }

    /// Each thing must be allowed for itself.
    fn check(&self, access: &Access, caller: &User) -> Result<(), ApiError> {
        let may = |resource: Resource<'_>| {
            let asked = Attributes {
                verb: "impersonate".into(),
                subject: Subject::Resource(resource),
            };
            access.authorize(caller, &asked)
        };
        let core = |plural, namespace, name| Resource {
            version: "v1",
            plural,
            namespace,
            name,
            ..Resource::default()
        };
        let authentication = |plural, subresource, name| Resource {
            group: AUTHENTICATION,
            version: "v1",
            plural,
            subresource,
            name,
            ..Resource::default()
        };
        match service_account(&self.user) {
            Some((namespace, name)) => may(core("serviceaccounts", namespace, name.into()))?,
            None => may(core("users", "", self.user.as_str().into()))?,
        }
        for group in &self.groups {
            may(core("groups", "", group.into()))?;
        }
        for (key, values) in &self.extra {
            for value in values {
                may(authentication("userextras", key, value.into()))?;
            }
        }
        if !self.uid.is_empty() {
            may(authentication("uids", "", self.uid.as_str().into()))?;
        }
        Ok(())
    }

    /// The user with the groups that follow from the name when none were given.
    fn become_user(self) -> User {
        let mut groups = self.groups;
        if groups.is_empty()
            && let Some((namespace, _)) = service_account(&self.user)
        {
            groups.extend(service_account_groups(namespace));
        }
        let has = |groups: &[String], group: &str| groups.iter().any(|own| own == group);
        if self.user == ANONYMOUS {
            if !has(&groups, UNAUTHENTICATED) {
                groups.push(UNAUTHENTICATED.to_owned());
            }
        } else if !has(&groups, AUTHENTICATED) && !has(&groups, UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        User {
            name: self.user,
            groups,
            uid: self.uid,
            extra: self.extra,
        }
    }
}

/// Namespace and name of the service account that a user is.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    let valid =
        names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}
