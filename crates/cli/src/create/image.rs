//! `kubewright create api --image`: a kind whose objects run an image.

use anyhow::{Context as _, bail};
use clap::Args;
use kubewright_manifests::project::ImageFlags;
use serde_json::{Value, json};

use crate::image::check_reference;

/// The image that objects of a new kind run.
#[derive(Debug, Args, Clone)]
pub(super) struct Image {
    /// Have objects of the kind run this image: with replicas, a port, configuration, a status, a Deployment that the controller
    /// keeps, and tests of all that
    #[arg(long, value_name = "IMAGE", conflicts_with = "from_crd")]
    image: Option<String>,

    /// What runs in the container, with commas between the words; without it what the image says
    #[arg(
        long,
        value_name = "WORD,..",
        value_delimiter = ',',
        requires = "image",
        allow_hyphen_values = true
    )]
    image_container_command: Vec<String>,

    /// The port on which the program in the image listens
    #[arg(long, value_name = "PORT", requires = "image", value_parser = clap::value_parser!(u16).range(1..))]
    image_container_port: Option<u16>,

    /// The user that runs the program; without it the image's own, which may be root
    #[arg(long, value_name = "UID", requires = "image")]
    run_as_user: Option<u32>,
}

impl Image {
    /// What `PROJECT` says of it, if it is asked for.
    ///
    /// # Errors
    /// When the image or the command cannot be one.
    pub(super) fn flags(&self) -> anyhow::Result<Option<ImageFlags>> {
        let Some(image) = &self.image else {
            return Ok(None);
        };
        check_reference(image).context("--image")?;
        if self.image_container_command.iter().any(String::is_empty) {
            bail!("--image-container-command has an empty word; write it as program,--flag=value");
        }
        Ok(Some(ImageFlags {
            container_command: self.image_container_command.clone(),
            container_port: self.image_container_port,
            image: image.clone(),
            run_as_user: self.run_as_user,
        }))
    }
}

/// What rustfmt puts on one line of an array, and of an attribute.
const ARRAY_WIDTH: usize = 60;
const ATTRIBUTE_WIDTH: usize = 70;

/// Adds what the templates of such a kind are filled in with besides the usual.
pub(super) fn add_values(flags: &ImageFlags, values: &mut Value) {
    let quoted = |word: &String| format!("\"{}\"", word.escape_default());
    let words: Vec<String> = flags.container_command.iter().map(quoted).collect();
    let mut command = words.join(", ");
    if command.len() > ARRAY_WIDTH {
        let lines = words.iter().map(|word| format!("    {word},\n"));
        command = format!("\n{}", lines.collect::<String>());
    }
    let mut image = format!("default = {}", quoted(&flags.image));
    if image.len() > ATTRIBUTE_WIDTH {
        image = format!("\n        {image}\n    ");
    }
    let more = json!({
        "default_image": image,
        "port": flags.container_port,
        "run_as_user": flags.run_as_user,
        "command": command,
    });
    if let (Some(values), Value::Object(more)) = (values.as_object_mut(), more) {
        values.extend(more);
    }
}
