//! What an image that was loaded adds to a container: its files, its directory, its user.

use std::fs;
use std::path::{Path, PathBuf};

use kubewright_cluster::node::runtime::{ContainerConfig, StartError};

use crate::helper::message::{Identity, Launch};
use crate::images::StoredImage;
use crate::table::ImageProgram;

/// Largest file of users or groups that is read.
const LARGEST: u64 = 1 << 20;

/// The program of an image: its entry point, with its default arguments.
pub(super) fn program(image: &StoredImage) -> ImageProgram {
    ImageProgram {
        command: image.entrypoint.clone(),
        args: image.command.clone(),
        env: image.env.clone(),
    }
}

/// Has a container run in the files of an image. Without namespaces its program is run from there, and sees those of the machine.
///
/// # Errors
/// When the user of the image is unknown, or root where the pod forbids that.
pub(super) fn apply(
    image: &StoredImage,
    config: &ContainerConfig,
    launch: &mut Launch,
) -> Result<(), StartError> {
    let own = config.container.working_dir.as_deref().unwrap_or("");
    if own.is_empty() && !image.directory.is_empty() {
        launch.directory.clone_from(&image.directory);
    }
    user(image, launch)?;
    check_root(config, launch)?;
    match &mut launch.root {
        Some(root) => {
            root.lower = vec![image.root.clone()];
            root.machine = false;
        }
        None => {
            check_access(launch)?;
            without_root(image, launch);
        }
    }
    Ok(())
}

/// Images are readable for whoever loaded them alone, who is root here.
fn check_access(launch: &Launch) -> Result<(), StartError> {
    match launch.identity.user {
        Some(user) if user != 0 && nix::unistd::geteuid().is_root() => Err(StartError(format!(
            "user {user} cannot read the image: without namespaces root runs images as root alone"
        ))),
        _ => Ok(()),
    }
}

/// Finds the program and the directory among the files of the image.
fn without_root(image: &StoredImage, launch: &mut Launch) {
    let inside = |path: &str| image.root.join(path.trim_start_matches('/'));
    let path = launch.env.iter().find(|(name, _)| name == "PATH");
    let places = path.map(|(_, value)| value.clone()).unwrap_or_default();
    let found: Option<PathBuf> = if launch.program.contains('/') {
        Some(inside(&launch.program))
    } else {
        let mut places = places
            .split(':')
            .map(|place| inside(place).join(&launch.program));
        places.find(|file| file.is_file())
    };
    if let Some(found) = found.filter(|file| file.is_file()) {
        launch.program = found.display().to_string();
    }
    let directory = inside(&launch.directory);
    if directory.is_dir() {
        launch.directory = directory.display().to_string();
    }
}

/// The user of the image, unless the pod names one. Whoever is not root runs everything as themselves.
fn user(image: &StoredImage, launch: &mut Launch) -> Result<(), StartError> {
    let in_namespace = launch.root.as_ref().is_some_and(|root| root.user_namespace);
    let can = nix::unistd::geteuid().is_root() || in_namespace;
    if image.user.is_empty() || launch.identity.user.is_some() || !can {
        return Ok(());
    }
    let (user, group) = match image.user.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (image.user.as_str(), None),
    };
    let unknown = || {
        StartError(format!(
            "unable to find user {user}: no matching entries in passwd file"
        ))
    };
    let entry = entry(&image.root, "passwd", user);
    let number = user
        .parse()
        .ok()
        .or_else(|| entry.as_ref()?.get(2)?.parse().ok());
    let own_group = || entry.as_ref()?.get(3)?.parse().ok();
    let group: Option<u32> = match group {
        Some(group) => group.parse().ok().or_else(|| {
            let found = self::entry(&image.root, "group", group)?;
            found.get(2)?.parse().ok()
        }),
        None => own_group(),
    };
    launch.identity = Identity {
        user: Some(number.ok_or_else(unknown)?),
        group: launch
            .identity
            .group
            .filter(|group| *group != 0)
            .or(group)
            .or(Some(0)),
        groups: std::mem::take(&mut launch.identity.groups),
    };
    Ok(())
}

/// Whether a container that must not run as root would.
fn check_root(config: &ContainerConfig, launch: &Launch) -> Result<(), StartError> {
    let own = config.container.security_context.as_ref();
    let of_pod = config
        .pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.as_ref());
    let forbidden = own
        .and_then(|context| context.run_as_non_root)
        .or_else(|| of_pod?.run_as_non_root);
    if forbidden == Some(true) && launch.identity.user.unwrap_or(0) == 0 && launch.root.is_some() {
        let text = "container has runAsNonRoot and image will run as root";
        return Err(StartError(text.to_owned()));
    }
    Ok(())
}

/// The fields of a line of `/etc/passwd` or `/etc/group` of an image, which must not be a link to a file of the machine.
fn entry(root: &Path, file: &str, name: &str) -> Option<Vec<String>> {
    let path = root.join("etc").join(file);
    let plain = |path: &Path| {
        fs::symlink_metadata(path)
            .ok()
            .filter(|found| !found.is_symlink())
    };
    plain(&root.join("etc"))?;
    let found = plain(&path)?;
    if !found.is_file() || found.len() > LARGEST {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let lines = text
        .lines()
        .map(|line| line.split(':').map(ToOwned::to_owned).collect::<Vec<_>>());
    lines.into_iter().find(|fields| {
        fields.first().is_some_and(|first| first == name)
            || fields.get(2).is_some_and(|id| id == name)
    })
}
