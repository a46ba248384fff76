//! Where webhooks are while a program is developed or tested: at an address of this machine, behind no service.

use std::net::SocketAddr;

use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// Leads an API server to a program on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    address: SocketAddr,
    /// Certificates, in PEM, that the server is to trust there.
    bundle: ByteString,
}

impl Address {
    /// An address, and the certificates in PEM that are trusted there.
    pub fn new(address: SocketAddr, certificates: &str) -> Self {
        Self {
            address,
            bundle: ByteString(certificates.as_bytes().to_vec()),
        }
    }

    /// Makes a definition or configuration that refers to the manager's service refer to this address instead. What
    /// refers to an address already is not changed.
    ///
    /// ```
    /// use kubewright_manifests::webhook::Address;
    /// use serde_json::json;
    ///
    /// let address = Address::new("127.0.0.1:9443".parse()?, "");
    /// let service = json!({"name": "webhook-service", "namespace": "system", "path": "/validate"});
    /// let mut object = json!({"webhooks": [{"clientConfig": {"service": service}}]});
    /// address.lead(&mut object);
    /// assert_eq!(object["webhooks"][0]["clientConfig"]["url"], "https://127.0.0.1:9443/validate");
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn lead(&self, object: &mut Value) {
        if let Some(client) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
            self.lead_client(client);
        }
        let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
        for webhook in webhooks.into_iter().flatten() {
            if let Some(client) = webhook.get_mut("clientConfig") {
                self.lead_client(client);
            }
        }
    }

    fn lead_client(&self, client: &mut Value) {
        if let Some(service) = client.get("service") {
            let path = service["path"].as_str().unwrap_or_default();
            let url = format!("https://{}{path}", self.address);
            *client = json!({ "url": url, "caBundle": self.bundle });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(mut object: Value, expected: Value) {
        let address = Address::new(([127, 0, 0, 1], 9443).into(), "x");
        address.lead(&mut object);
        assert_eq!(object, expected);
    }

    #[test]
    fn services_become_the_address_and_addresses_stay() {
        let conversion =
            |client: Value| json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}});
        check(
            conversion(json!({"service": {"name": "a", "namespace": "b", "path": "/convert"}})),
            conversion(json!({"url": "https://127.0.0.1:9443/convert", "caBundle": "eA=="})),
        );
        let elsewhere = json!({"webhooks": [{"clientConfig": {"url": "https://example.com/x"}}]});
        check(elsewhere.clone(), elsewhere);
        check(json!({"spec": {}}), json!({"spec": {}}));
    }
}
