//! Images that were loaded run with their own files, as they say of themselves.
#![cfg(target_os = "linux")]

mod world;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubewright_process::{ImageStore, Isolation, Processes};
use ring::digest::SHA256;
use serde_json::{Value, json};
use world::{World, container, helper};

/// The shell of this machine and the libraries that it needs.
fn shell() -> Vec<PathBuf> {
    let program = fs::canonicalize("/bin/sh").expect("there is a shell");
    let output = Command::new("ldd")
        .arg(&program)
        .output()
        .expect("ldd runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    let mut files: Vec<PathBuf> = words.map(PathBuf::from).collect();
    files.push(program);
    files
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = ring::digest::digest(&SHA256, bytes)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// Writes a blob of a layout and describes it.
fn blob(layout: &Path, bytes: &[u8]) -> Value {
    let name = digest(bytes);
    let directory = layout.join("blobs/sha256");
    fs::create_dir_all(&directory).expect("made");
    fs::write(directory.join(&name[7..]), bytes).expect("written");
    json!({"digest": name, "size": bytes.len()})
}

fn layer(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(0o755);
        header.set_size(content.len() as u64);
        let path = path.trim_start_matches('/');
        archive
            .append_data(&mut header, path, &content[..])
            .expect("added");
    }
    archive.into_inner().expect("whole")
}

/// An OCI layout of an image with a shell, in two layers.
fn layout(place: &Path) -> PathBuf {
    let layout = place.join("layout");
    let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
    let mut lower: Vec<(String, Vec<u8>)> = shell()
        .iter()
        .map(|path| (path.display().to_string(), fs::read(path).expect("read")))
        .collect();
    let program = lower.last().map(|(path, _)| path.clone()).expect("a shell");
    lower.push(file("etc/passwd", "app:x:1234:1235::/:/bin/sh\n"));
    lower.push(file("secret", "hidden by the layer above"));
    lower.push(file("work/hello", "hello from the image"));
    let upper = [file(".wh.secret", "")];
    let layers = [blob(&layout, &layer(&lower)), blob(&layout, &layer(&upper))];
    let config = json!({
        "architecture": "any", "os": "linux",
        "config": {
            "Entrypoint": [program, "-c"], "Cmd": ["echo by default; read line < hello; echo $line"],
            "Env": ["FROM_IMAGE=yes", "PATH=/bin"], "WorkingDir": "/work", "User": "app",
        },
    });
    let config = blob(&layout, config.to_string().as_bytes());
    let manifest = json!({"schemaVersion": 2, "config": config, "layers": layers});
    let mut root = blob(&layout, manifest.to_string().as_bytes());
    root["annotations"] = json!({"io.containerd.image.name": "example.com/shell:1"});
    let index = json!({"schemaVersion": 2, "manifests": [root]});
    fs::write(layout.join("index.json"), index.to_string()).expect("written");
    layout
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loaded_image_runs_with_its_own_files_user_and_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = ImageStore::at(directory.path().join("store"));
    let image = store.load(&layout(directory.path()), None).expect("loaded");
    assert_eq!(image.names, ["example.com/shell:1"]);
    let processes = Processes::default().images(store).helper(helper());
    let (runtime, world) = World::with_runtime(processes).await;
    let more = json!({"container": {"image": "example.com/shell:1", "args": []}});
    world.script("usual", "", more).await;
    world.until_phase("usual", "Succeeded").await;
    assert_eq!(
        world.log("usual").await,
        "by default\nhello from the image\n"
    );
    if matches!(runtime.isolation(), Isolation::None(_)) {
        println!("there are no mount namespaces here");
        return world.cluster.stop().await;
    }
    let script = "pwd; echo $FROM_IMAGE; [ -e /secret ] || echo whiteout; [ -e /usr/share/doc ] || echo own files; \
                  while read key value rest; do [ $key = Uid: ] && echo user $value; done < /proc/self/status; true";
    let more = json!({"container": {"image": "example.com/shell:1"}});
    let args = json!({"container": {"image": "example.com/shell:1", "args": [script]}});
    world.script("looks", "", world::with(more, &args)).await;
    world.until_phase("looks", "Succeeded").await;
    let expected = "/work\nyes\nwhiteout\nown files\nuser 1234\n";
    assert_eq!(world.log("looks").await, expected);
    let root = json!({"container": {"image": "example.com/shell:1", "args": ["true"],
                      "securityContext": {"runAsNonRoot": true, "runAsUser": 0}}});
    world.script("root", "", root).await;
    let pod = world.until_phase("root", "Failed").await;
    let message = container(&pod).state.and_then(|s| s.terminated?.message);
    assert!(message.is_some_and(|text| text.contains("image will run as root")));
    world.cluster.stop().await;
}

#[test]
fn images_are_listed_and_removed_and_damage_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = ImageStore::at(directory.path().join("store"));
    let layout = layout(directory.path());
    store.load(&layout, Some("web")).expect("loaded");
    let names = ["docker.io/library/web:latest", "example.com/shell:1"];
    assert_eq!(store.list().expect("listed")[0].names, names);
    assert!(store.find("web:latest").is_some() && store.find("web:2").is_none());
    store.remove("web").expect("removed");
    assert!(store.find("web").is_none() && store.find("example.com/shell:1").is_some());
    let digest = store.list().expect("listed")[0].digest.clone();
    assert!(store.find(&format!("any@{digest}")).is_some());
    store.remove("example.com/shell:1").expect("removed");
    assert!(store.list().expect("listed").is_empty());
    assert!(store.remove("web").is_err());
    let blobs = layout.join("blobs/sha256");
    let one = fs::read_dir(&blobs)
        .expect("read")
        .flatten()
        .next()
        .expect("a blob");
    fs::write(one.path(), "damaged").expect("written");
    assert!(store.load(&layout, None).is_err());
    assert!(store.list().expect("listed").is_empty());
    let left: Vec<_> = fs::read_dir(directory.path().join("store"))
        .expect("read")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}
