//! The command line of an operator, with the names that kubebuilder's managers have.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use kubewright_runtime::States;

use super::own::OwnFlags;

/// What the command line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) metrics_address: String,
    pub(super) metrics_secure: bool,
    pub(super) metrics_certificates: Option<PathBuf>,
    pub(super) metrics_certificate_name: String,
    pub(super) metrics_key_name: String,
    pub(super) webhook_address: String,
    pub(super) webhook_certificates: Option<PathBuf>,
    pub(super) webhook_certificate_name: String,
    pub(super) webhook_key_name: String,
    /// How long webhooks are served after a signal, if it is not the default.
    pub(super) webhook_drain: Option<Duration>,
    pub(super) certificates: Option<CertificateFlags>,
    pub(super) probes_address: String,
    pub(super) leader_elect: bool,
    /// Whether replicas share the objects. Never together with an election.
    pub(super) shard: bool,
    /// Whether caches hold the replica's own share alone. Never without `shard`.
    pub(super) shard_caches: bool,
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) context: Option<String>,
    pub(super) namespaces: Vec<String>,
    pub(super) log_level: Option<String>,
    pub(super) log_json: bool,
}

/// What the command line says about certificates that the operator makes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificateFlags {
    pub(super) secret: String,
    pub(super) services: Vec<String>,
    pub(super) mutating: Vec<String>,
    pub(super) validating: Vec<String>,
    pub(super) lifetime: Duration,
    pub(super) settle: Duration,
}

/// What is to be done.
#[derive(Debug)]
pub(super) enum Task {
    /// Print what is registered.
    Inventory,
    /// Run the operator with these flags, and with what its own say.
    Run(Box<Flags>, States),
}

/// Reads a command line, the program's name first, and the variable `WATCH_NAMESPACE`.
///
/// # Errors
/// When it is wrong, or asks for help.
pub(super) fn parse(
    (name, version): (&'static str, &'static str),
    own: &[OwnFlags],
    arguments: impl IntoIterator<Item = OsString>,
    watched: Option<String>,
) -> Result<Task, clap::Error> {
    let mut command = command(name, version);
    for flags in own {
        command = flags.add_to(command)?;
    }
    let matches = command.try_get_matches_from_mut(arguments)?;
    if matches.subcommand_matches("inventory").is_some() {
        return Ok(Task::Inventory);
    }
    let flags = flags(&matches, watched);
    if flags.shard && flags.leader_elect {
        let problem =
            "--shard takes the place of --leader-elect: with one leader there is nothing to share";
        return Err(command.error(ErrorKind::ArgumentConflict, problem));
    }
    if flags.shard_caches && !flags.shard {
        let problem =
            "--shard-caches needs --shard: a replica that shares nothing reads everything";
        return Err(command.error(ErrorKind::MissingRequiredArgument, problem));
    }
    let mut states = States::default();
    for own in own {
        own.read(&matches, &mut states)?;
    }
    Ok(Task::Run(Box::new(flags), states))
}

fn command(name: &'static str, version: &'static str) -> Command {
    let text =
        |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let switch = |name: &'static str, default: &'static str| {
        let arg = Arg::new(name)
            .long(name)
            .num_args(0..=1)
            .require_equals(true);
        let arg = arg.value_parser(value_parser!(bool)).value_name("BOOL");
        arg.default_value(default).default_missing_value("true")
    };
    Command::new(name)
        .version(version)
        .about("Runs the controllers of this operator against the cluster of the kubeconfig or the service account")
        .subcommand(Command::new("inventory").hide(true).about("Prints what is registered, as JSON"))
        // It needs none of the flags that an operator may require.
        .subcommand_negates_reqs(true)
        .arg(text("metrics-bind-address", "ADDRESS").default_value("0").help("Where metrics are served, `:8443`; `0` serves none"))
        .arg(switch("metrics-secure", "true").help("Serve metrics over TLS, to those whose token the API server allows to"))
        .arg(text("metrics-cert-path", "DIRECTORY").value_parser(value_parser!(PathBuf)).help("The directory of the certificate of metrics; without one it signs its own"))
        .arg(text("metrics-cert-name", "FILE").default_value("tls.crt").help("The certificate in it"))
        .arg(text("metrics-cert-key", "FILE").default_value("tls.key").help("The key in it"))
        .arg(text("webhook-bind-address", "ADDRESS").default_value(":9443").help("Where webhooks are served, if there are any; `0` serves none"))
        .arg(text("webhook-cert-path", "DIRECTORY").value_parser(value_parser!(PathBuf)).help("The directory of the certificate of webhooks; without one they are served if --cert-secret is given"))
        .arg(text("webhook-cert-name", "FILE").default_value("tls.crt").help("The certificate in it"))
        .arg(text("webhook-cert-key", "FILE").default_value("tls.key").help("The key in it"))
        .arg(text("webhook-drain", "TIME").value_parser(duration).help("How long webhooks are served after a signal to stop, while API servers learn of it; by default 5s in a pod, else 0s"))
        .arg(text("cert-secret", "NAME").help("Make certificates for webhooks and metrics, and keep them in this Secret of the operator's namespace"))
        .arg(text("cert-service", "NAME").action(ArgAction::Append).requires("cert-secret").help("A Service that they are valid for"))
        .arg(text("mutating-webhook-configuration", "NAME").action(ArgAction::Append).requires("cert-secret").help("A configuration that gets their CA bundle"))
        .arg(text("validating-webhook-configuration", "NAME").action(ArgAction::Append).requires("cert-secret").help("A configuration that gets their CA bundle"))
        .arg(text("cert-lifetime", "TIME").default_value("90d").value_parser(duration).help("How long they are valid; they are replaced after two thirds of that"))
        .arg(text("cert-settle", "TIME").default_value("5m").value_parser(duration).help("How long everybody is given to notice a new one"))
        .arg(text("health-probe-bind-address", "ADDRESS").default_value(":8081").help("Where /healthz and /readyz are served; `0` serves none"))
        .arg(switch("leader-elect", "false").help("Run controllers only while holding the lease of this operator"))
        .arg(switch("shard", "false").help("Share the objects among all replicas: each reconciles its part and takes over from those that end; instead of --leader-elect, and the same in all replicas"))
        .arg(switch("shard-caches", "false").help("Keep only the objects of this replica's share in memory, of the kinds that controllers reconcile; with --shard"))
        .arg(text("kubeconfig", "FILE").value_parser(value_parser!(PathBuf)).help("The kubeconfig; by default $KUBECONFIG, ~/.kube/config or the service account"))
        .arg(text("context", "CONTEXT").help("The context of the kubeconfig; by default its current one"))
        .arg(text("namespace", "NAMESPACE").action(ArgAction::Append).value_delimiter(',').help("Watch this namespace alone; by default $WATCH_NAMESPACE, or all"))
        .arg(text("log-level", "LEVEL").help("error, warn, info, debug or trace; `info,my_crate=debug` by module; by default $KUBEWRIGHT_LOG_LEVEL, or info"))
        .arg(text("log-format", "FORMAT").default_value("text").value_parser(PossibleValuesParser::new(["text", "json"])).help("How lines of the log look"))
}

fn flags(matches: &ArgMatches, watched: Option<String>) -> Flags {
    let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let on = |name: &str| matches.get_one::<bool>(name).copied().unwrap_or_default();
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let given = matches.get_many::<String>("namespace");
    let mut namespaces: Vec<String> = match given {
        Some(given) => given.cloned().collect(),
        None => watched
            .iter()
            .flat_map(|list| list.split(','))
            .map(|one| one.trim().to_owned())
            .collect(),
    };
    namespaces.retain(|namespace| !namespace.is_empty());
    namespaces.sort();
    namespaces.dedup();
    Flags {
        metrics_address: text("metrics-bind-address"),
        metrics_secure: on("metrics-secure"),
        metrics_certificates: path("metrics-cert-path"),
        metrics_certificate_name: text("metrics-cert-name"),
        metrics_key_name: text("metrics-cert-key"),
        webhook_address: text("webhook-bind-address"),
        webhook_certificates: path("webhook-cert-path"),
        webhook_certificate_name: text("webhook-cert-name"),
        webhook_key_name: text("webhook-cert-key"),
        webhook_drain: matches.get_one::<Duration>("webhook-drain").copied(),
        certificates: certificates(matches),
        probes_address: text("health-probe-bind-address"),
        leader_elect: on("leader-elect"),
        shard: on("shard"),
        shard_caches: on("shard-caches"),
        kubeconfig: path("kubeconfig"),
        context: matches.get_one::<String>("context").cloned(),
        namespaces,
        log_level: matches.get_one::<String>("log-level").cloned(),
        log_json: text("log-format") == "json",
    }
}

fn certificates(matches: &ArgMatches) -> Option<CertificateFlags> {
    let all = |name: &str| -> Vec<String> {
        let given = matches.get_many::<String>(name);
        given.into_iter().flatten().cloned().collect()
    };
    let time = |name: &str| matches.get_one::<Duration>(name).copied();
    Some(CertificateFlags {
        secret: matches.get_one::<String>("cert-secret").cloned()?,
        services: all("cert-service"),
        mutating: all("mutating-webhook-configuration"),
        validating: all("validating-webhook-configuration"),
        lifetime: time("cert-lifetime").unwrap_or_default(),
        settle: time("cert-settle").unwrap_or_default(),
    })
}

/// A value of a flag is not a whole number with a unit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a time such as 90d, 12h, 5m or 30s")]
struct DurationError(String);

/// A whole number and its unit: `90d`, `12h`, `5m` or `30s`.
fn duration(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError(text.to_owned());
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        'd' => 24 * 60 * 60,
        'h' => 60 * 60,
        'm' => 60,
        's' => 1,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let all = number.checked_mul(seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90d"), Ok(Duration::from_secs(90 * 86400)));
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        for wrong in ["", "5", "m", "1.5h", "5ä", "999999999999999999d"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn certificates_are_made_when_a_secret_is_named() {
        assert_eq!(read(&[], None).certificates, None);
        let flags = ["--cert-secret=a", "--cert-service=b", "--cert-service=c"];
        let made = read(&flags, None).certificates.expect("a Secret is named");
        assert_eq!(
            (&*made.secret, &*made.services),
            ("a", &["b".to_owned(), "c".to_owned()][..])
        );
        let alone = ["operator", "--cert-service=b"].map(OsString::from);
        assert!(parse(NAMES, &[], alone, None).is_err());
    }

    const NAMES: (&str, &str) = ("operator", "1");

    fn read(arguments: &[&str], watched: Option<&str>) -> Flags {
        read_with(&[], arguments, watched).0
    }

    fn read_with(own: &[OwnFlags], arguments: &[&str], watched: Option<&str>) -> (Flags, States) {
        let arguments = std::iter::once("operator")
            .chain(arguments.iter().copied())
            .map(OsString::from);
        match parse(NAMES, own, arguments, watched.map(str::to_owned)) {
            Ok(Task::Run(flags, states)) => (*flags, states),
            other => panic!("flags, not {other:?}"),
        }
    }

    /// Flags of an operator's own.
    #[derive(Debug, PartialEq, clap::Args)]
    struct Regions {
        /// The region that new buckets are in
        #[arg(long)]
        region: String,
        /// How many may be made at once
        #[arg(long, default_value_t = 2)]
        buckets: usize,
    }

    #[derive(Debug, clap::Args)]
    struct Taken {
        #[arg(long = "namespace")]
        _of_secrets: Option<String>,
    }

    #[test]
    fn own_flags_are_read_beside_those_of_every_operator() {
        let own = [OwnFlags::of::<Regions>()];
        let (flags, states) = read_with(&own, &["--region=eu", "--shard"], None);
        assert!(flags.shard);
        let (region, buckets) = ("eu".to_owned(), 2);
        assert_eq!(states.get::<Regions>(), Ok(&Regions { region, buckets }));

        let parsed = |arguments: &[&str]| {
            let arguments = ["operator"].iter().chain(arguments);
            parse(NAMES, &own, arguments.map(OsString::from), None)
        };
        let missing = parsed(&[]).expect_err("a flag is required").to_string();
        assert!(missing.contains("--region"), "{missing}");
        let inventory = parsed(&["inventory"]);
        assert!(matches!(inventory, Ok(Task::Inventory)), "{inventory:?}");
        let help = parsed(&["--help"]).expect_err("it helps").to_string();
        for part in [
            "Options of this operator:",
            "The region that new buckets are in",
            "--leader-elect",
        ] {
            assert!(help.contains(part), "{part}: {help}");
        }
    }

    #[test]
    fn own_flags_take_no_name_that_operators_have() {
        let own = [OwnFlags::of::<Taken>()];
        let taken = parse(NAMES, &own, ["operator".into()], None);
        let taken = taken.expect_err("a name that is taken").to_string();
        assert!(
            taken.contains("operators have the flag --namespace already"),
            "{taken}"
        );
    }

    #[test]
    fn defaults_are_those_of_kubebuilder() {
        let flags = read(&[], None);
        assert_eq!(flags.metrics_address, "0");
        assert_eq!(flags.probes_address, ":8081");
        assert_eq!(flags.webhook_address, ":9443");
        assert_eq!(flags.webhook_drain, None);
        assert!(flags.metrics_secure && !flags.leader_elect && !flags.log_json);
        assert!(flags.namespaces.is_empty() && flags.context.is_none());
        assert_eq!(read(&["--context=a"], None).context.as_deref(), Some("a"));
    }

    #[test]
    fn switches_take_a_value_as_in_go() {
        assert!(read(&["--leader-elect"], None).leader_elect);
        assert!(read(&["--leader-elect=true"], None).leader_elect);
        assert!(!read(&["--metrics-secure=false"], None).metrics_secure);
    }

    #[test]
    fn objects_are_shared_instead_of_led() {
        assert!(!read(&[], None).shard);
        assert!(read(&["--shard"], None).shard);
        // What a generated Deployment says can be taken back.
        assert!(read(&["--leader-elect=false", "--shard"], None).shard);
        let both = ["operator", "--leader-elect", "--shard"].map(OsString::from);
        let refused = parse(NAMES, &[], both, None).expect_err("one of them");
        assert!(refused.to_string().contains("takes the place"), "{refused}");
    }

    #[test]
    fn caches_are_shared_where_objects_are() {
        assert!(!read(&["--shard"], None).shard_caches);
        assert!(read(&["--shard", "--shard-caches"], None).shard_caches);
        let alone = ["operator", "--shard-caches"].map(OsString::from);
        let refused = parse(NAMES, &[], alone, None).expect_err("nothing is shared");
        assert!(refused.to_string().contains("needs --shard"), "{refused}");
    }

    #[test]
    fn namespaces_come_from_flags_or_the_variable() {
        assert_eq!(
            read(&["--namespace", "b", "--namespace=a"], Some("c")).namespaces,
            ["a", "b"]
        );
        assert_eq!(read(&[], Some("c, d,")).namespaces, ["c", "d"]);
    }

    #[test]
    fn unknown_flags_are_errors() {
        let wrong = ["operator", "--metrics"].map(OsString::from);
        assert!(parse(NAMES, &[], wrong, None).is_err());
        let inventory = ["operator", "inventory"].map(OsString::from);
        let inventory = parse(NAMES, &[], inventory, None);
        assert!(matches!(inventory, Ok(Task::Inventory)), "{inventory:?}");
    }
}
