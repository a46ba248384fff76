//! What the operator asks of etcd, through the JSON gateway that every member serves beside gRPC.
//!
//! 64-bit numbers are texts in that JSON, and fields with the value of their type's zero are left out.

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::transport::{Endpoint, Transport, TransportError};

/// Why a request to etcd failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// Nobody answered, or not in time. It may have happened or not.
    #[error("{member} does not answer {path}")]
    NoAnswer {
        /// The member that was asked.
        member: String,
        /// What was asked.
        path: &'static str,
        /// What happened to the connection.
        #[source]
        source: TransportError,
    },
    /// The member refused, and said why.
    #[error("{member} refuses {path}: {message}")]
    Refused {
        /// The member that was asked.
        member: String,
        /// What was asked.
        path: &'static str,
        /// What it said.
        message: String,
    },
    /// The answer is not what etcd answers.
    #[error("{member} answers {path} with something else")]
    Garbled {
        /// The member that was asked.
        member: String,
        /// What was asked.
        path: &'static str,
        /// Where it cannot be read.
        #[source]
        source: serde_json::Error,
    },
}

/// A member as etcd lists it.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ListedMember {
    /// Its id.
    #[serde(rename = "ID", deserialize_with = "number")]
    pub id: u64,
    /// Its name; empty until it has started.
    #[serde(default)]
    pub name: String,
    /// Where other members reach it.
    #[serde(default, rename = "peerURLs")]
    pub peer_urls: Vec<String>,
    /// Whether it does not vote yet.
    #[serde(default)]
    pub is_learner: bool,
}

impl ListedMember {
    /// The name of its pod: the first label of its peer address, which it has from the beginning.
    pub fn pod(&self) -> &str {
        let address = self.peer_urls.first().map_or("", String::as_str);
        let host = address.split_once("://").map_or(address, |(_, host)| host);
        host.split(['.', ':', '/']).next().unwrap_or_default()
    }
}

/// How a member is, by its own account.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// Who answered, of which cluster, at which revision.
    pub header: Header,
    /// The version that it runs.
    #[serde(default)]
    pub version: String,
    /// Whom it follows; zero while there is no leader.
    #[serde(default, deserialize_with = "number")]
    pub leader: u64,
    /// The term of that leader.
    #[serde(default, deserialize_with = "number")]
    pub raft_term: u64,
    /// What is wrong with it.
    #[serde(default)]
    pub errors: Vec<String>,
}

/// The head of every answer.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct Header {
    /// The cluster.
    #[serde(default, deserialize_with = "number")]
    pub cluster_id: u64,
    /// The member that answered.
    #[serde(default, deserialize_with = "number")]
    pub member_id: u64,
    /// The revision of its data.
    #[serde(default, deserialize_with = "number")]
    pub revision: u64,
}

#[derive(Deserialize)]
struct MemberList {
    #[serde(default)]
    members: Vec<ListedMember>,
}

#[derive(Deserialize)]
struct Added {
    member: ListedMember,
}

#[derive(Deserialize)]
struct Nothing {}

/// What the operator asks of the members of etcd clusters.
pub trait Etcd: Send + Sync {
    /// Asks a member how it is.
    ///
    /// # Errors
    /// When it does not answer.
    fn status<'a>(&'a self, member: &'a Endpoint)
    -> BoxFuture<'a, Result<MemberStatus, EtcdError>>;

    /// Lists the members. Etcd before 3.5 answers from the member's own state, so the leader should be asked.
    ///
    /// # Errors
    /// When the member does not answer, or is a learner.
    fn members<'a>(
        &'a self,
        leader: &'a Endpoint,
    ) -> BoxFuture<'a, Result<Vec<ListedMember>, EtcdError>>;

    /// Adds a learner, which is to be reached at this address.
    ///
    /// # Errors
    /// When there is no quorum, a member is not healthy, or there is one with this address.
    fn add_learner<'a>(
        &'a self,
        leader: &'a Endpoint,
        peer_url: &'a str,
    ) -> BoxFuture<'a, Result<ListedMember, EtcdError>>;

    /// Lets a learner vote.
    ///
    /// # Errors
    /// When it has not caught up with the leader.
    fn promote<'a>(&'a self, leader: &'a Endpoint, id: u64)
    -> BoxFuture<'a, Result<(), EtcdError>>;

    /// Removes a member; its process ends by itself.
    ///
    /// # Errors
    /// When there is no such member, or the quorum would be lost.
    fn remove<'a>(&'a self, leader: &'a Endpoint, id: u64) -> BoxFuture<'a, Result<(), EtcdError>>;

    /// Has another voter lead. Only the leader can do that.
    ///
    /// # Errors
    /// When the one that is asked does not lead, or the other one does not take over.
    fn move_leader<'a>(
        &'a self,
        leader: &'a Endpoint,
        to: u64,
    ) -> BoxFuture<'a, Result<(), EtcdError>>;

    /// Gives free space in the data file of a member back. The member does not serve meanwhile.
    ///
    /// # Errors
    /// When it does not answer.
    fn defragment<'a>(&'a self, member: &'a Endpoint) -> BoxFuture<'a, Result<(), EtcdError>>;
}

/// Etcd by its JSON gateway, over any transport.
#[derive(Debug, Clone)]
pub struct Gateway<T>(
    /// What brings requests to members.
    pub T,
);

impl<T: Transport> Gateway<T> {
    async fn ask<A: DeserializeOwned>(
        &self,
        endpoint: &Endpoint,
        path: &'static str,
        body: Value,
    ) -> Result<A, EtcdError> {
        let member = || endpoint.member.clone();
        let body = Bytes::from(body.to_string());
        let answer = self.0.post(endpoint, path, body).await;
        let answer = answer.map_err(|source| EtcdError::NoAnswer {
            member: member(),
            path,
            source,
        })?;
        if answer.code != 200 {
            let (member, message) = (member(), refusal(&answer.body));
            return Err(EtcdError::Refused {
                member,
                path,
                message,
            });
        }
        serde_json::from_slice(&answer.body).map_err(|source| EtcdError::Garbled {
            member: member(),
            path,
            source,
        })
    }

    async fn order(
        &self,
        endpoint: &Endpoint,
        path: &'static str,
        body: Value,
    ) -> Result<(), EtcdError> {
        let _: Nothing = self.ask(endpoint, path, body).await?;
        Ok(())
    }
}

impl<T: Transport> Etcd for Gateway<T> {
    fn status<'a>(
        &'a self,
        member: &'a Endpoint,
    ) -> BoxFuture<'a, Result<MemberStatus, EtcdError>> {
        Box::pin(self.ask(member, "/v3/maintenance/status", json!({})))
    }

    fn members<'a>(
        &'a self,
        leader: &'a Endpoint,
    ) -> BoxFuture<'a, Result<Vec<ListedMember>, EtcdError>> {
        let body = json!({ "linearizable": true });
        Box::pin(async move {
            let list: MemberList = self.ask(leader, "/v3/cluster/member/list", body).await?;
            Ok(list.members)
        })
    }

    fn add_learner<'a>(
        &'a self,
        leader: &'a Endpoint,
        peer_url: &'a str,
    ) -> BoxFuture<'a, Result<ListedMember, EtcdError>> {
        let body = json!({ "peerURLs": [peer_url], "isLearner": true });
        Box::pin(async move {
            let added: Added = self.ask(leader, "/v3/cluster/member/add", body).await?;
            Ok(added.member)
        })
    }

    fn promote<'a>(
        &'a self,
        leader: &'a Endpoint,
        id: u64,
    ) -> BoxFuture<'a, Result<(), EtcdError>> {
        let body = json!({ "ID": id.to_string() });
        Box::pin(self.order(leader, "/v3/cluster/member/promote", body))
    }

    fn remove<'a>(&'a self, leader: &'a Endpoint, id: u64) -> BoxFuture<'a, Result<(), EtcdError>> {
        let body = json!({ "ID": id.to_string() });
        Box::pin(self.order(leader, "/v3/cluster/member/remove", body))
    }

    fn move_leader<'a>(
        &'a self,
        leader: &'a Endpoint,
        to: u64,
    ) -> BoxFuture<'a, Result<(), EtcdError>> {
        let body = json!({ "targetID": to.to_string() });
        Box::pin(self.order(leader, "/v3/maintenance/transfer-leadership", body))
    }

    fn defragment<'a>(&'a self, member: &'a Endpoint) -> BoxFuture<'a, Result<(), EtcdError>> {
        Box::pin(self.order(member, "/v3/maintenance/defragment", json!({})))
    }
}

/// What a refusal says; etcd puts it into `message`, older versions also into `error`.
fn refusal(body: &[u8]) -> String {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let message = text("message").or_else(|| text("error"));
    let message = message.unwrap_or("no reason given");
    message.chars().take(200).collect()
}

/// Reads a number that is a text, as protobuf's JSON has those of 64 bits.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match Value::deserialize(from)? {
        Value::String(text) => text.parse().map_err(serde::de::Error::custom),
        Value::Number(number) => number
            .as_u64()
            .ok_or_else(|| serde::de::Error::custom("not a number of 64 bits")),
        _ => Err(serde::de::Error::custom("neither a number nor a text")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_etcd_are_read() {
        let text = r#"{"header":{"cluster_id":"9434953093299506148","member_id":"6950292943509884063","revision":"1",
            "raft_term":"2"},"version":"3.4.23","dbSize":"20480","leader":"6950292943509884063","raftIndex":"4","raftTerm":"2"}"#;
        let status: MemberStatus = serde_json::from_str(text).expect("a status");
        assert_eq!(status.leader, status.header.member_id);
        assert_eq!((status.raft_term, status.header.revision), (2, 1));
        let text = r#"{"members":[{"ID":"8501532455877169263","peerURLs":["https://e-1.e.default.svc:2380"],"isLearner":true}]}"#;
        let list: MemberList = serde_json::from_str(text).expect("a list");
        let member = &list.members[0];
        assert_eq!((member.pod(), member.name.as_str()), ("e-1", ""));
        assert!(member.is_learner);
    }

    #[test]
    fn refusals_say_why() {
        let body =
            br#"{"error":"etcdserver: not leader","message":"etcdserver: not leader","code":9}"#;
        assert_eq!(refusal(body), "etcdserver: not leader");
        assert_eq!(refusal(b"<html>"), "no reason given");
    }
}
