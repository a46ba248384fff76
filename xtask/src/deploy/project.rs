//! The project: scaffolded in an empty folder, edited as its author would, compiled into images.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::process::{self, End, Output};
use crate::workspace;

/// How long nothing may come from a step; the first one compiles everything.
const PATIENCE: Duration = Duration::from_secs(1800);
const KIND: &str = "--group shelf --version v1 --kind Book";
const WEBHOOKS: &str = "src/webhook/v1/book.rs";
/// What webhooks of the first and of the second image say about a book without a title.
pub(crate) const REFUSALS: [&str; 2] = ["a book has a title", "every book needs a title"];

/// An edit of a scaffolded file: the file, what is there, and what is written instead.
type Edit = (&'static str, &'static str, &'static str);

/// What the author makes of the scaffolded files: `title` in v1 is `heading` in v2.
const EDITS: [Edit; 6] = [
    (
        "src/api/v1/book.rs",
        "    pub size: Option<i32>,\n",
        "    pub pages: Option<i32>,\n    /// What the book is called.\n    pub title: Option<String>,\n",
    ),
    (
        "src/api/v2/book.rs",
        "    pub size: Option<i32>,\n",
        "    pub pages: Option<i32>,\n    /// What the book is called.\n    pub heading: Option<String>,\n",
    ),
    (
        WEBHOOKS,
        "pub fn default(_object: &mut Book) {\n",
        "pub fn default(object: &mut Book) {\n    object.spec.pages.get_or_insert(7);\n",
    ),
    (
        WEBHOOKS,
        "pub fn validate(_object: &Book, _old: Option<&Book>) -> Result<(), String> {\n",
        "pub fn validate(object: &Book, _old: Option<&Book>) -> Result<(), String> {\n    \
         if object.spec.title.as_deref().unwrap_or_default().is_empty() {\n        \
         return Err(\"a book has a title\".to_owned());\n    }\n",
    ),
    (
        WEBHOOKS,
        "        same_fields(&self)\n",
        "        let mut hub: Book = same_fields(&self)?;\n        hub.spec.title = self.spec.heading;\n        Ok(hub)\n",
    ),
    (
        WEBHOOKS,
        "        same_fields(&hub)\n",
        "        let mut spoke: Self = same_fields(&hub)?;\n        spoke.spec.heading = hub.spec.title;\n        Ok(spoke)\n",
    ),
];

/// A project, the command that works on it, and where its images are kept.
pub(crate) struct Project {
    kubewright: PathBuf,
    /// The folder of the project, which is empty at first.
    pub(crate) folder: PathBuf,
    /// What is around it: images, logs, the kubeconfig.
    pub(crate) around: PathBuf,
}

impl Project {
    pub(crate) fn new(kubewright: &Path, folder: &Path, around: &Path) -> Self {
        Self {
            kubewright: kubewright.to_owned(),
            folder: folder.to_owned(),
            around: around.to_owned(),
        }
    }

    /// Makes the project, with a kind of two versions and all webhooks, and edits it.
    pub(crate) fn scaffold(&self) -> Result<String> {
        self.call("init --domain my.domain")?;
        self.call(&format!("create api {KIND} --make=false"))?;
        self.call(&format!("create version {KIND} --to v2 --make=false"))?;
        let hooks = "--defaulting --programmatic-validation --conversion --spoke v2";
        self.call(&format!("create webhook {KIND} {hooks} --make=false"))?;
        for edit in EDITS {
            self.edit(edit)?;
        }
        Ok(format!("{} edits", EDITS.len()))
    }

    /// Generates what is deployed, from the compiled program.
    pub(crate) fn generate(&self) -> Result<String> {
        self.call("generate")?;
        self.call("lint")?;
        Ok("dist/install.yaml and config/; lint finds nothing".to_owned())
    }

    /// Builds an image and loads it for pods. The second one is of other sources.
    pub(crate) fn image(&self, image: &str) -> Result<String> {
        if image.ends_with(":2") {
            self.edit((WEBHOOKS, REFUSALS[0], REFUSALS[1]))?;
        }
        let archive = self.archive(image);
        let build = format!("image build --image {image} --tar {}", archive.display());
        let built = self.call(&build)?;
        let loaded = self.call(&format!("image load {}", archive.display()))?;
        let digest = |text: &str| -> Option<String> {
            let line = text.lines().find(|line| line.contains("sha256:"))?;
            Some(line.trim().split(',').next()?.to_owned())
        };
        let (built, loaded) = (digest(&built.stdout), digest(&loaded.stdout));
        let digest = loaded.context("image load prints no digest")?;
        ensure!(
            built.as_deref() == Some(&*digest),
            "{built:?} was built, {digest} loaded"
        );
        let size = fs::metadata(&archive)?.len();
        fs::write(archive.with_extension("digest"), &digest)?;
        Ok(format!("{:.1} MB, {digest}", size as f64 / 1e6))
    }

    /// The name of an image that was loaded, by its digest: the tag may be moved to another.
    pub(crate) fn by_digest(&self, image: &str) -> Result<String> {
        let file = self.archive(image).with_extension("digest");
        let digest = fs::read_to_string(&file);
        let digest = digest.with_context(|| format!("{image} was not built"))?;
        let name = image.rsplit_once(':').map_or(image, |(name, _)| name);
        Ok(format!("{name}@{digest}"))
    }

    fn archive(&self, image: &str) -> PathBuf {
        let name = image.rsplit('/').next().unwrap_or(image).replace(':', "-");
        self.around.join(name + ".tar")
    }

    fn edit(&self, (file, from, to): Edit) -> Result<()> {
        let path = self.folder.join(file);
        let text = fs::read_to_string(&path).with_context(|| format!("{file} is missing"))?;
        ensure!(text.contains(from), "{file} does not contain {from:?}");
        fs::write(&path, text.replace(from, to)).with_context(|| format!("writing {file}"))
    }

    /// The command in the project's folder.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.kubewright);
        command
            .current_dir(&self.folder)
            .env_remove("CARGO")
            .env_remove("CARGO_MANIFEST_DIR")
            .env("KUBEWRIGHT_IMAGES", self.around.join("images"))
            .env("KUBECONFIG", self.kubeconfig())
            // Dependencies are compiled once for all runs, and for `cargo xtask guestbook` as well.
            .env("CARGO_TARGET_DIR", workspace::target().join("guestbook"));
        command
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.around.join("kubeconfig")
    }

    /// Runs a command to its end, which has to be a good one.
    pub(crate) fn call(&self, line: &str) -> Result<Output> {
        let output = process::run(self.command().args(line.split(' ')), "", PATIENCE)?;
        if output.end != End::Exited(0) {
            let text = format!("{}{}", output.stdout, output.stderr);
            let last: Vec<&str> = text.lines().rev().take(30).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            bail!("kubewright {line}: {}", last.join("\n"));
        }
        Ok(output)
    }
}
