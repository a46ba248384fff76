//! The kubeconfig that lets kubectl and every other client in.

use std::fmt;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::pki::Pki;
use crate::private_file::write_private;

/// A kubeconfig for the administrator of one server. Its text is a secret.
#[derive(Clone)]
pub struct Kubeconfig(String);

impl Kubeconfig {
    /// For the administrator's certificate, a server at this URL, and the authority (PEM) that vouches for it.
    pub(crate) fn new(pki: &Pki, url: &str, authority: &str) -> Self {
        let base64 = |pem: &str| STANDARD.encode(pem);
        Self(format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: kubewright\nclusters:\n- name: kubewright\n  cluster:\n    \
             server: {url}\n    certificate-authority-data: {}\ncontexts:\n- name: kubewright\n  context:\n    \
             cluster: kubewright\n    user: kubernetes-admin\nusers:\n- name: kubernetes-admin\n  user:\n    \
             client-certificate-data: {}\n    client-key-data: {}\n",
            base64(authority),
            base64(pki.admin_certificate()),
            base64(pki.admin_key()),
        ))
    }

    /// Returns the kubeconfig as YAML.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Writes it to a file that only its owner can read.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_private(path, &self.0)
    }
}

impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kubeconfig")
    }
}
