//! The file system that a container sees: layers under a writable one, devices, `/proc`, volumes.
//!
//! Everything is mounted in a mount namespace of the container's own, so it goes with the last process in it.

mod machine;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::message::{Mount, Root, Source, Writable};

/// Where the root of the machine is while mounts are made.
const OLD: &str = "/.kubewright-old";
/// Devices that every container has.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Places of the machine that a container has its own of, or none.
const OWN_PLACES: [&str; 6] = ["/proc", "/sys", "/dev", "/tmp", "/run", "/var/tmp"];

/// What could not be mounted.
pub(super) fn why<'a>(
    what: impl std::fmt::Display + 'a,
) -> impl FnOnce(nix::Error) -> io::Error + 'a {
    move |error| io::Error::other(format!("mounting {what}: {}", error.desc()))
}

/// Makes the file system of a container and moves into it. The process has to be alone in its mount namespace, and the
/// first one of its pid namespace.
pub(super) fn enter(root: &Root) -> io::Result<()> {
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(why("/"))?;
    let further = if root.machine {
        further_mounts(&root.place)
    } else {
        Vec::new()
    };
    let (layered, parts) = if root.machine && root.user_namespace {
        machine::parts(root)?
    } else {
        (layers(root)?, Vec::new())
    };
    let old = layered.join(OLD.trim_start_matches('/'));
    fs::create_dir_all(&old)?;
    nix::unistd::pivot_root(&layered, &old).map_err(why("the new root"))?;
    std::env::set_current_dir("/")?;
    for place in &further {
        bind(&under_old(place), place, Writable::No)?;
    }
    system_places(root)?;
    for volume in &root.mounts {
        attach(volume)?;
    }
    for hidden in &root.hidden {
        if hidden.is_dir() {
            tmpfs(hidden, "mode=000,size=0", MsFlags::MS_RDONLY)?;
        }
    }
    umount2(OLD, MntFlags::MNT_DETACH).map_err(why("nothing at the old root"))?;
    fs::remove_dir(OLD)?;
    if root.writable == Writable::No {
        for part in parts.iter().map(PathBuf::as_path).chain([Path::new("/")]) {
            read_only(part)?;
        }
    }
    nix::unistd::sethostname(&root.hostname)?;
    Ok(())
}

/// The layers under a writable one; returns where they are.
fn layers(root: &Root) -> io::Result<PathBuf> {
    tmpfs(&root.place, "mode=755", MsFlags::empty())?;
    let writable = root.upper.clone().unwrap_or_else(|| root.place.clone());
    let (upper, work) = (writable.join("upper"), writable.join("work"));
    let top = root.place.join("root");
    for directory in [&upper, &work, &top] {
        fs::create_dir_all(directory)?;
    }
    overlay(&root.lower, (&upper, &work), &top, root.user_namespace).map_err(why("the layers"))?;
    Ok(top)
}

/// Mounts layers, the topmost first, under a writable one.
fn overlay(
    lower: &[PathBuf],
    (upper, work): (&Path, &Path),
    target: &Path,
    user_namespace: bool,
) -> nix::Result<()> {
    let lower: Vec<String> = lower.iter().map(|layer| escaped(layer)).collect();
    let mut options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.join(":"),
        escaped(upper),
        escaped(work)
    );
    if user_namespace {
        options += ",userxattr";
    }
    let kind = Some("overlay");
    let flags = MsFlags::empty();
    mount(kind, target, kind, flags, Some(options.as_str()))
}

/// A path as an option of an overlay, where commas and colons separate.
fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.replace('\\', "\\\\")
        .replace(':', "\\:")
        .replace(',', "\\,")
}

fn under_old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

/// Other file systems of the machine: a layer shows one file system, not what is mounted in it.
fn further_mounts(own: &Path) -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let points = points.map(|point| PathBuf::from(point.replace("\\040", " ")));
    let mut kept: Vec<PathBuf> = Vec::new();
    for point in points {
        let elsewhere = OWN_PLACES.iter().any(|place| point.starts_with(place));
        let inside = kept.iter().any(|known| point.starts_with(known));
        if point != Path::new("/") && !elsewhere && !inside && !point.starts_with(own) {
            kept.push(point);
        }
    }
    kept
}

/// What every container has besides its files.
fn system_places(root: &Root) -> io::Result<()> {
    let none = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    fs::create_dir_all("/proc")?;
    mount(Some("proc"), "/proc", Some("proc"), none, None::<&str>).map_err(why("/proc"))?;
    fs::create_dir_all("/sys")?;
    bind(
        &under_old(Path::new("/sys")),
        Path::new("/sys"),
        Writable::Yes,
    )?;
    devices()?;
    for (place, mode) in [
        ("/tmp", "mode=1777"),
        ("/run", "mode=755"),
        ("/var/tmp", "mode=1777"),
    ] {
        // Images bring their own, which are as writable as the rest of them.
        if root.machine {
            fs::create_dir_all(place)?;
            tmpfs(
                Path::new(place),
                mode,
                MsFlags::MS_NOSUID | MsFlags::MS_NODEV,
            )?;
        }
    }
    if !root.machine {
        fs::create_dir_all("/tmp")?;
    }
    Ok(())
}

fn devices() -> io::Result<()> {
    fs::create_dir_all("/dev")?;
    tmpfs(Path::new("/dev"), "mode=755", MsFlags::MS_NOSUID)?;
    for name in DEVICES {
        let device = Path::new("/dev").join(name);
        File::create(&device)?;
        bind(&under_old(&device), &device, Writable::Yes)?;
    }
    for (place, kind, options) in [
        ("/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620"),
        ("/dev/shm", "tmpfs", "mode=1777"),
    ] {
        fs::create_dir(place)?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
        mount(Some(kind), place, Some(kind), flags, Some(options)).map_err(why(place))?;
    }
    symlink("pts/ptmx", "/dev/ptmx")?;
    symlink("/proc/self/fd", "/dev/fd")?;
    for (number, name) in ["stdin", "stdout", "stderr"].into_iter().enumerate() {
        symlink(
            format!("/proc/self/fd/{number}"),
            Path::new("/dev").join(name),
        )?;
    }
    Ok(())
}

fn tmpfs(place: &Path, options: &str, flags: MsFlags) -> io::Result<()> {
    mount(Some("tmpfs"), place, Some("tmpfs"), flags, Some(options)).map_err(why(place.display()))
}

/// Mounts a volume, or a file that the node provides.
fn attach(volume: &Mount) -> io::Result<()> {
    let target = Path::new(&volume.target);
    match &volume.source {
        Source::Memory { size } => {
            fs::create_dir_all(target)?;
            let size = size
                .map(|bytes| format!(",size={bytes}"))
                .unwrap_or_default();
            tmpfs(target, &format!("mode=777{size}"), MsFlags::empty())
        }
        Source::Path { path, part } => {
            let source = under_old(path);
            match part {
                None => place(&source, target, volume.writable),
                Some(part) => {
                    // The part is looked up without leaving the volume, whatever links somebody has put into it.
                    let opened = part_of(&source, part)?;
                    use std::os::fd::AsRawFd as _;
                    let link = format!("/proc/self/fd/{}", opened.as_raw_fd());
                    place(Path::new(&link), target, volume.writable)
                }
            }
        }
    }
}

/// Binds a file or directory where there may be nothing yet.
fn place(source: &Path, target: &Path, writable: Writable) -> io::Result<()> {
    let found = fs::metadata(source)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", target.display())))?;
    if found.is_dir() {
        fs::create_dir_all(target)?;
    } else if !target.exists() {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        if target.is_symlink() {
            // A link to a place that the container has its own of, such as that of systemd-resolved.
            fs::remove_file(target)?;
        }
        OpenOptions::new().create(true).append(true).open(target)?;
    }
    bind(source, target, writable)
}

/// A part of a volume, which the runtime has made if it was not there.
fn part_of(volume: &Path, part: &str) -> io::Result<std::os::fd::OwnedFd> {
    let directory = File::open(volume)?;
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(directory.as_fd(), part, how)
        .map_err(|error| io::Error::other(format!("subPath {part:?}: {}", error.desc())))
}

fn bind(source: &Path, target: &Path, writable: Writable) -> io::Result<()> {
    let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(source), target, None::<&str>, flags, None::<&str>)
        .map_err(why(target.display()))?;
    match writable {
        Writable::Yes => Ok(()),
        Writable::No => read_only(target),
    }
}

/// Makes a mount read-only, and leaves what else is forbidden there forbidden: a user namespace may not allow it.
fn read_only(target: &Path) -> io::Result<()> {
    let found = statvfs(target)?.flags();
    let mut flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    for (kept, flag) in [
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ] {
        if found.contains(kept) {
            flags |= flag;
        }
    }
    mount(None::<&str>, target, None::<&str>, flags, None::<&str>)
        .map_err(why(format!("{} read-only", target.display())))
}
