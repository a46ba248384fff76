//! From a container with everything resolved to what the helper starts.

mod of_image;

use std::collections::BTreeMap;
use std::path::Path;

use kubewright_cluster::node::runtime::{ContainerConfig, StartError, expand};

use crate::helper::message::{Identity, Launch, Mount, Root, Source, Writable};
use crate::isolation::Isolation;
use crate::ledger::MARK;
use crate::mounts::Prepared;
use crate::names;
use crate::options::{Image, Options};
use crate::table::ImageProgram;

/// Places of the machine that a container has its own of.
const HIDDEN: [&str; 3] = ["/tmp", "/run", "/var/tmp"];
/// Where programs are looked for when a container does not say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the helper starts for a container.
///
/// # Errors
/// When nobody knows what its image is, or it runs as somebody that it may not be.
pub(crate) fn plan(
    options: &Options,
    config: &ContainerConfig,
    prepared: &Prepared,
) -> Result<Launch, StartError> {
    let name = config.container.image.as_deref().unwrap_or("");
    let Some(image) = options.find_image(name) else {
        let text = format!("neither a program nor an image is called {name:?}");
        return Err(StartError(text));
    };
    let program = match &image {
        Image::Program(program) => program.clone(),
        Image::Stored(stored) => of_image::program(stored),
    };
    let mut env = match &options.isolation {
        Isolation::None(_) => without_mounts(config, prepared)?,
        Isolation::Root | Isolation::User => BTreeMap::new(),
    };
    env.insert(MARK.to_owned(), options.state.id().to_owned());
    let env = environment(&program, config, env);
    let (command, args) = words(&program, config, &env);
    let mut words = command.into_iter().chain(args);
    let Some(first) = words.next() else {
        return Err(StartError("no command was given".to_owned()));
    };
    let directory = config.container.working_dir.clone();
    let directory = directory.filter(|text| !text.is_empty());
    let mut launch = Launch {
        program: first,
        args: words.collect(),
        directory: directory.unwrap_or("/".to_owned()),
        groups: Vec::new(),
        terminal: None,
        identity: identity(config)?,
        root: root(options, &program, config, prepared),
        env: env.into_iter().collect(),
    };
    if let Image::Stored(stored) = &image {
        of_image::apply(stored, config, &mut launch)?;
    }
    Ok(launch)
}

/// What a program is given that does not see volumes at their paths: where they are, in variables. An event says so.
fn without_mounts(
    config: &ContainerConfig,
    prepared: &Prepared,
) -> Result<BTreeMap<String, String>, StartError> {
    let written = prepared.write_kubeconfig(config);
    written.map_err(|error| StartError(format!("the kubeconfig of the pod: {error}")))?;
    for text in prepared.elsewhere() {
        config.events.warn("VolumeElsewhere", text);
    }
    Ok(prepared.variables())
}

/// The environment: what every container has, what the image has, what the pod says, each before the last.
fn environment(
    program: &ImageProgram,
    config: &ContainerConfig,
    mut env: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    env.insert("PATH".to_owned(), PATH.to_owned());
    env.insert("HOSTNAME".to_owned(), names::host_name(&config.pod));
    if config.container.tty == Some(true) {
        env.insert("TERM".to_owned(), "xterm".to_owned());
    }
    if let Some(address) = config.address {
        env.insert("POD_IP".to_owned(), address.to_string());
    }
    let places = places(config);
    for (name, value) in &program.env {
        env.insert(name.clone(), expand(value, &places, &env));
    }
    env.extend(config.env.iter().cloned());
    env
}

/// What the arguments and variables of an image may name besides variables: where the container is.
fn places(config: &ContainerConfig) -> BTreeMap<String, String> {
    let pod = &config.id.pod;
    let address = config.address.map(|a| a.to_string()).unwrap_or_default();
    [
        ("POD_IP", address),
        ("POD_NAME", pod.name.clone()),
        ("POD_NAMESPACE", pod.namespace.clone()),
        ("POD_UID", pod.uid.clone()),
        ("NODE_NAME", config.node.clone()),
        ("CONTAINER_NAME", config.id.container.clone()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// The command and its arguments: those of the container replace those of the image, as in a container engine. A command
/// that names the image's own program means the one that stands for it, wherever the image has it.
fn words(
    program: &ImageProgram,
    config: &ContainerConfig,
    env: &BTreeMap<String, String>,
) -> (Vec<String>, Vec<String>) {
    let places = places(config);
    let expanded = |words: &[String]| -> Vec<String> {
        words
            .iter()
            .map(|word| expand(word, env, &places))
            .collect()
    };
    if config.command.is_empty() {
        let args = if config.args.is_empty() {
            expanded(&program.args)
        } else {
            config.args.clone()
        };
        return (expanded(&program.command), args);
    }
    let mut command = config.command.clone();
    if let (Some(given), Some(own)) = (command.first_mut(), program.command.first())
        && Path::new(given.as_str()).file_name() == Path::new(own).file_name()
    {
        given.clone_from(own);
    }
    (command, config.args.clone())
}

/// The file system that the container sees; the machine's when there are no namespaces.
fn root(
    options: &Options,
    program: &ImageProgram,
    config: &ContainerConfig,
    prepared: &Prepared,
) -> Option<Root> {
    let user_namespace = match options.isolation {
        Isolation::Root => false,
        Isolation::User => true,
        Isolation::None(_) => return None,
    };
    let context = config.container.security_context.as_ref();
    let read_only = context.and_then(|context| context.read_only_root_filesystem);
    Some(Root {
        place: options.state.empty(),
        lower: vec!["/".into()],
        upper: None,
        machine: true,
        user_namespace,
        writable: if read_only == Some(true) {
            Writable::No
        } else {
            Writable::Yes
        },
        hostname: names::kernel_name(&config.pod),
        mounts: mounts(program, config, prepared),
        hidden: vec![options.state.path().to_owned()],
    })
}

/// What is mounted: the program of the table where the container would not see it, then volumes and files of the pod.
fn mounts(program: &ImageProgram, config: &ContainerConfig, prepared: &Prepared) -> Vec<Mount> {
    let path = program.command.first().map(Path::new);
    let hidden = path.filter(|path| HIDDEN.iter().any(|place| path.starts_with(place)));
    let own = hidden.filter(|path| path.is_file()).map(|path| Mount {
        source: Source::Path {
            path: path.to_owned(),
            part: None,
        },
        target: path.display().to_string(),
        writable: Writable::No,
    });
    own.into_iter().chain(prepared.mounts(config)).collect()
}

/// Who the container runs as.
fn identity(config: &ContainerConfig) -> Result<Identity, StartError> {
    let of_pod = config
        .pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.as_ref());
    let own = config.container.security_context.as_ref();
    let user = own
        .and_then(|context| context.run_as_user)
        .or_else(|| of_pod?.run_as_user);
    let group = own
        .and_then(|context| context.run_as_group)
        .or_else(|| of_pod?.run_as_group);
    let number = |id: i64| {
        u32::try_from(id).map_err(|_| StartError(format!("{id} is not the number of a user")))
    };
    let mut groups = Vec::new();
    if let Some(context) = of_pod {
        let more = context.supplemental_groups.iter().flatten();
        for id in context.fs_group.iter().chain(more) {
            groups.push(number(*id)?);
        }
    }
    let user = user.map(number).transpose()?;
    let mut group = group.map(number).transpose()?;
    if group.is_none() && (user.is_some() || !groups.is_empty()) && nix::unistd::geteuid().is_root()
    {
        // Whoever has no group of their own is in the group of root, as in a container engine.
        group = Some(0);
    }
    Ok(Identity {
        user,
        group,
        groups,
    })
}
