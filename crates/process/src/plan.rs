//! From a container with everything resolved to what the helper starts.

use std::collections::BTreeMap;
use std::path::Path;

use kubewright_cluster::node::runtime::{ContainerConfig, StartError, expand};

use crate::helper::message::{Identity, Launch, Root, Writable};
use crate::isolation::Isolation;
use crate::options::Options;
use crate::table::ImageProgram;

/// Where programs are looked for when a container does not say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the helper starts for a container.
///
/// # Errors
/// When nobody knows what its image is, or it runs as somebody that it may not be.
pub(crate) fn plan(options: &Options, config: &ContainerConfig) -> Result<Launch, StartError> {
    let image = config.container.image.as_deref().unwrap_or("");
    let Some(program) = options.table.find(image) else {
        return Err(StartError(format!(
            "no program stands for the image {image:?}"
        )));
    };
    let env = environment(program, config);
    let (command, args) = words(program, config, &env);
    let mut command = command.into_iter();
    let Some(first) = command.next() else {
        return Err(StartError("no command was given".to_owned()));
    };
    let directory = config.container.working_dir.clone();
    Ok(Launch {
        program: first,
        args: command.chain(args).collect(),
        env: env.into_iter().collect(),
        directory: directory
            .filter(|text| !text.is_empty())
            .unwrap_or("/".to_owned()),
        terminal: None,
        identity: identity(config)?,
        root: root(options, config),
    })
}

/// The environment: what every container has, what the image has, what the pod says, each before the last.
fn environment(program: &ImageProgram, config: &ContainerConfig) -> BTreeMap<String, String> {
    let pod = &config.id.pod;
    let mut env = BTreeMap::from([
        ("PATH".to_owned(), PATH.to_owned()),
        ("HOSTNAME".to_owned(), pod.name.clone()),
    ]);
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
fn root(options: &Options, config: &ContainerConfig) -> Option<Root> {
    let user_namespace = match options.isolation {
        Isolation::Root => false,
        Isolation::User => true,
        Isolation::None(_) => return None,
    };
    let context = config.container.security_context.as_ref();
    let read_only = context.and_then(|context| context.read_only_root_filesystem);
    let spec = config.pod.spec.as_ref();
    let hostname = spec.and_then(|spec| spec.hostname.clone());
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
        hostname: hostname.unwrap_or_else(|| config.id.pod.name.clone()),
        mounts: Vec::new(),
        hidden: vec![options.state.path().to_owned()],
    })
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
    Ok(Identity {
        user: user.map(number).transpose()?,
        group: group.map(number).transpose()?,
        groups,
    })
}
