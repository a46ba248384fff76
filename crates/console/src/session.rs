//! Sessions: who may talk to the console, decided from the head of a request alone.
//!
//! A link carries a ticket in its fragment, which browsers send to nobody. The page exchanges it for a bearer token and
//! sends that in a header, so a page of another origin has nothing to ride on: there is no cookie. A request must name the
//! console in `Host` (a name that was rebound to 127.0.0.1 does not) and must not come from another origin.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use http::request::Parts;
use rand::{RngCore as _, TryRngCore as _, rngs::OsRng};
use subtle::ConstantTimeEq as _;

/// Subprotocol that carries the bearer token of a WebSocket, which cannot have headers of its own.
const SOCKET_PREFIX: &str = "bearer.";

/// The secrets of one run of the console. They live in memory and end with it.
pub(crate) struct Sessions {
    ticket: String,
    bearer: String,
    hosts: Vec<String>,
}

/// Why a request is refused before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this name does not belong to the console; open the link that it printed")]
    WrongHost,
    #[error("requests from pages of other origins are refused")]
    CrossOrigin,
    #[error("the session is unknown; open the link that the console printed")]
    Unauthenticated,
}

impl Sessions {
    /// New secrets for a console that is reached by these values of `Host`.
    pub(crate) fn new(hosts: Vec<String>) -> Self {
        Self {
            ticket: secret(),
            bearer: secret(),
            hosts,
        }
    }

    /// What goes into the fragment of the link.
    pub(crate) fn ticket(&self) -> &str {
        &self.ticket
    }

    /// The bearer token, in exchange for the ticket.
    pub(crate) fn exchange(&self, ticket: &str) -> Result<&str, Refusal> {
        if is_same(ticket, &self.ticket) {
            Ok(&self.bearer)
        } else {
            Err(Refusal::Unauthenticated)
        }
    }

    /// Whether a request is meant for the console and comes from its own page, or from no page at all.
    pub(crate) fn check_origin(&self, head: &Parts) -> Result<(), Refusal> {
        let host = text(head, HOST.as_str()).ok_or(Refusal::WrongHost)?;
        if !self
            .hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(host))
        {
            return Err(Refusal::WrongHost);
        }
        if let Some(origin) = text(head, ORIGIN.as_str())
            && !origin.eq_ignore_ascii_case(&format!("http://{host}"))
        {
            return Err(Refusal::CrossOrigin);
        }
        match text(head, "sec-fetch-site") {
            // A person who follows the link comes from nowhere or from another page; that is a navigation, for assets only.
            Some("same-origin" | "none") | None => Ok(()),
            Some(_) if text(head, "sec-fetch-mode") == Some("navigate") => Ok(()),
            Some(_) => Err(Refusal::CrossOrigin),
        }
    }

    /// Whether a request has the bearer token.
    pub(crate) fn check_bearer(&self, head: &Parts) -> Result<(), Refusal> {
        let header =
            text(head, AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        let socket = || {
            let offered = text(head, SEC_WEBSOCKET_PROTOCOL.as_str())?;
            offered
                .split(',')
                .find_map(|protocol| protocol.trim().strip_prefix(SOCKET_PREFIX))
        };
        match header.or_else(socket) {
            Some(token) if is_same(token, &self.bearer) => Ok(()),
            _ => Err(Refusal::Unauthenticated),
        }
    }
}

fn text<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name)?.to_str().ok()
}

fn is_same(given: &str, secret: &str) -> bool {
    given.as_bytes().ct_eq(secret.as_bytes()).into()
}

fn secret() -> String {
    let mut bytes = [0; 32];
    OsRng.unwrap_err().fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn head(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::get("/api/kinds");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("it is a request").into_parts().0
    }

    /// Headers, and the answer that they get.
    type Case<'a> = (&'a [(&'a str, &'a str)], Result<(), Refusal>);

    #[test]
    fn requests_are_taken_from_the_console_itself_only() {
        let sessions = Sessions::new(vec!["127.0.0.1:80".to_owned()]);
        let own = ("host", "127.0.0.1:80");
        let cases: &[Case<'_>] = &[
            (&[own], Ok(())),
            (&[own, ("origin", "http://127.0.0.1:80")], Ok(())),
            (&[own, ("sec-fetch-site", "same-origin")], Ok(())),
            (&[], Err(Refusal::WrongHost)),
            (&[("host", "evil.example:80")], Err(Refusal::WrongHost)),
            (&[("host", "127.0.0.1:81")], Err(Refusal::WrongHost)),
            (
                &[own, ("origin", "http://evil.example")],
                Err(Refusal::CrossOrigin),
            ),
            (&[own, ("origin", "null")], Err(Refusal::CrossOrigin)),
            (
                &[
                    own,
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "cors"),
                ],
                Err(Refusal::CrossOrigin),
            ),
            (
                &[
                    own,
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
                Ok(()),
            ),
        ];
        for (headers, expected) in cases {
            assert_eq!(
                sessions.check_origin(&head(headers)),
                *expected,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn bearer_is_given_for_the_ticket_alone() {
        let sessions = Sessions::new(Vec::new());
        assert!(sessions.exchange("").is_err());
        assert!(sessions.exchange(&sessions.bearer).is_err());
        let bearer = sessions
            .exchange(sessions.ticket())
            .expect("it is the ticket")
            .to_owned();
        let header = format!("Bearer {bearer}");
        assert_eq!(
            sessions.check_bearer(&head(&[("authorization", &header)])),
            Ok(())
        );
        let socket = format!("v5.channel.k8s.io, bearer.{bearer}");
        assert_eq!(
            sessions.check_bearer(&head(&[("sec-websocket-protocol", &socket)])),
            Ok(())
        );
        let forged = format!("Bearer {}", sessions.ticket());
        for wrong in ["Bearer ", &forged, &bearer] {
            let refused = sessions.check_bearer(&head(&[("authorization", wrong)]));
            assert_eq!(refused, Err(Refusal::Unauthenticated), "{wrong}");
        }
    }
}
