//! An image, as the OCI image specification has it: layers, a configuration, a manifest, an index. Pure: programs in, blobs out.
//!
//! The same programs give the same digests: nothing here knows the time, the machine or the user.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::SHA256;
use serde_json::{Value, json};

use super::program::{Machine, Program};
use super::roots;
use super::tar::Archive;

pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The user that programs run as: nobody on any machine.
const USER: &str = "65532:65532";
/// The program, in the image.
const ENTRY_POINT: &str = "/manager";
const ROOTS: &str = "etc/ssl/certs/ca-certificates.crt";

/// What something is called by its contents.
pub(super) fn digest(bytes: &[u8]) -> String {
    let hash = ring::digest::digest(&SHA256, bytes);
    let hex: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// An image for one machine or several, and everything that it consists of.
#[derive(Debug, Default)]
pub(super) struct Image {
    /// By digest.
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    /// What describes the whole: the manifest of one machine, or the index of several.
    pub(super) root: Value,
    /// The manifest of each machine.
    pub(super) manifests: Vec<Value>,
}

/// What an image begins with, if it is not empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Base {
    /// Descriptors of layers, the lowest first.
    pub(super) layers: Vec<Value>,
    /// What they are called uncompressed.
    pub(super) diff_ids: Vec<Value>,
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// An image of these programs, each for a machine of its own.
    ///
    /// # Errors
    /// When a layer cannot be written.
    pub(super) fn of(programs: &[(Program, Base)], labels: &Value) -> io::Result<Self> {
        let mut image = Self::default();
        for (program, base) in programs {
            let manifest = image.add_machine(program, base, labels)?;
            image.manifests.push(manifest);
        }
        image.root = match image.manifests.as_slice() {
            [one] => one.clone(),
            many => {
                let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": many});
                image.add_json(INDEX, &index)
            }
        };
        Ok(image)
    }

    /// The digest of the whole.
    pub(super) fn digest(&self) -> &str {
        self.root["digest"].as_str().unwrap_or_default()
    }

    /// Bytes that have to be transported.
    pub(super) fn size(&self) -> usize {
        self.blobs.values().map(Vec::len).sum()
    }

    fn add_machine(&mut self, program: &Program, base: &Base, labels: &Value) -> io::Result<Value> {
        self.blobs.extend(base.blobs.clone());
        let (mut layers, mut diff_ids) = (base.layers.clone(), base.diff_ids.clone());
        for archive in [surroundings()?, alone(program)?] {
            diff_ids.push(json!(digest(&archive)));
            let mut packed = GzEncoder::new(Vec::new(), Compression::best());
            packed.write_all(&archive)?;
            layers.push(self.add(LAYER, packed.finish()?));
        }
        let config = self.add_json(CONFIG, &config(program.machine, &diff_ids, labels));
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config,
            "layers": layers,
        });
        let mut descriptor = self.add_json(MANIFEST, &manifest);
        descriptor["platform"] =
            json!({"architecture": program.machine.architecture, "os": "linux"});
        Ok(descriptor)
    }

    fn add_json(&mut self, media_type: &str, value: &Value) -> Value {
        self.add(media_type, value.to_string().into_bytes())
    }

    /// Keeps a blob and describes it.
    fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let (digest, size) = (digest(&bytes), bytes.len());
        self.blobs.insert(digest.clone(), bytes);
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }
}

fn config(machine: Machine, diff_ids: &[Value], labels: &Value) -> Value {
    json!({
        "architecture": machine.architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "User": USER,
            "Entrypoint": [ENTRY_POINT],
            "WorkingDir": "/",
            "Env": ["PATH=/", format!("SSL_CERT_FILE=/{ROOTS}")],
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
    })
}

/// The layer that hardly ever changes: whom to trust, who the user is, a place for files.
fn surroundings() -> io::Result<Vec<u8>> {
    let mut archive = Archive::new(Vec::new());
    archive.folder("etc/", 0o755)?;
    archive.file("etc/group", 0o644, b"root:x:0:\nnonroot:x:65532:\n")?;
    let users =
        "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n";
    archive.file("etc/passwd", 0o644, users.as_bytes())?;
    for folder in ["etc/ssl/", "etc/ssl/certs/"] {
        archive.folder(folder, 0o755)?;
    }
    archive.file(ROOTS, 0o644, roots::pem().as_bytes())?;
    archive.folder("tmp/", 0o1777)?;
    archive.finish()
}

/// The layer of the program.
fn alone(program: &Program) -> io::Result<Vec<u8>> {
    let mut archive = Archive::new(Vec::new());
    archive.file(ENTRY_POINT.trim_start_matches('/'), 0o755, &program.bytes)?;
    archive.finish()
}
