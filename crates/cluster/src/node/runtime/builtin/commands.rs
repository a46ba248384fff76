//! The commands that are known.

use std::time::Duration;

use bytes::Bytes;

use super::super::files::absolute;
use super::super::tar::{self, Entry};
use super::outcome::is_same_everywhere;
use super::{Effect, Halt, Shell};

/// Longest sleep that is taken.
const LONGEST: u64 = 100 * 365 * 24 * 3600;

/// Carries out a command.
///
/// # Errors
/// Why nothing after it is carried out.
pub(super) fn run_command(shell: &mut Shell<'_>, argv: &[String]) -> Result<(), Halt> {
    let status = shell.status.to_string();
    let argv: Vec<String> = argv
        .iter()
        .map(|word| word.replace("\u{0}?", &status))
        .collect();
    let Some((name, args)) = argv.split_first() else {
        return Ok(());
    };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let name = name.rsplit('/').next().unwrap_or(name);
    if let Some((variable, value)) = name.split_once('=').filter(|_| args.is_empty()) {
        shell.env.insert(variable.to_owned(), value.to_owned());
        return Ok(());
    }
    match name {
        "sh" | "bash" | "ash" | "dash" | "busybox" => return shell_command(shell, &args),
        "exec" => {
            let rest: Vec<String> = argv[1..].to_vec();
            return shell.run(&rest);
        }
        "exit" => {
            let code = args.first().and_then(|code| code.parse::<u8>().ok());
            return Err(Halt::Exit(code.map_or(shell.status, i32::from)));
        }
        "sleep" => return sleep(shell, &args),
        "tail" if args.contains(&"-f") || args.contains(&"-F") => return forever(shell),
        "pause" => return forever(shell),
        _ => {}
    }
    plain(shell, name, &args)
}

fn plain(shell: &mut Shell<'_>, name: &str, args: &[&str]) -> Result<(), Halt> {
    shell.certain &= is_same_everywhere(name);
    match name {
        "true" | ":" | "set" | "export" | "wait" | "chmod" | "chown" | "sync" | "ulimit"
        | "umask" => {
            if name == "export" {
                export(shell, args);
            }
            shell.status = 0;
        }
        "trap" => {
            shell.traps |= args
                .iter()
                .any(|arg| matches!(*arg, "TERM" | "SIGTERM" | "15"));
            shell.status = 0;
        }
        "false" => shell.status = 1,
        "echo" => echo(shell, args),
        "printf" => printf(shell, args),
        "env" | "printenv" => printenv(shell, args),
        "pwd" => shell.print(format!("{}\n", shell.directory)),
        "hostname" => shell.print(format!("{}\n", shell.hostname)),
        "whoami" => shell.print("root\n"),
        "id" => shell.print("uid=0(root) gid=0(root) groups=0(root)\n"),
        "uname" => shell.print("Linux\n"),
        "cd" => shell.directory = absolute(&shell.directory, args.first().unwrap_or(&"/root")),
        "cat" => cat(shell, args),
        "ls" => ls(shell, args),
        "touch" => write_each(shell, args),
        "mkdir" => {
            for path in operands(args) {
                let path = absolute(&shell.directory, path);
                shell.files.make_directory(&path);
            }
            shell.status = 0;
        }
        "rm" => remove(shell, args),
        "test" | "[" => test(shell, args),
        "tar" => tar_command(shell, args),
        _ => return Err(Halt::NotPlain),
    }
    Ok(())
}

fn operands<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let is_operand = |arg: &&&str| !arg.starts_with('-') || **arg == "-";
    args.iter().filter(is_operand).copied().collect()
}

fn shell_command(shell: &mut Shell<'_>, args: &[&str]) -> Result<(), Halt> {
    let at = args
        .iter()
        .position(|arg| arg.starts_with('-') && arg.ends_with('c'));
    let Some(script) = at.and_then(|at| args.get(at + 1)) else {
        // A shell without a script reads one from its input, which has nothing.
        let script = String::from_utf8_lossy(&shell.stdin).into_owned();
        return if args.is_empty() {
            shell.script(&script)
        } else {
            Err(Halt::NotPlain)
        };
    };
    match shell.script(script) {
        Err(Halt::Exit(code)) if shell.effects.last() != Some(&Effect::Forever) => {
            shell.status = code;
            Ok(())
        }
        other => other,
    }
}

fn sleep(shell: &mut Shell<'_>, args: &[&str]) -> Result<(), Halt> {
    let mut total = Duration::ZERO;
    for arg in args {
        if matches!(*arg, "infinity" | "inf") {
            return forever(shell);
        }
        let digits = arg.trim_end_matches(['s', 'm', 'h', 'd']);
        let scale = match &arg[digits.len()..] {
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => 1.0,
        };
        let seconds = digits.parse::<f64>().map_err(|_| Halt::NotPlain)? * scale;
        let pause = Duration::try_from_secs_f64(seconds).map_err(|_| Halt::NotPlain)?;
        total = total.saturating_add(pause.min(Duration::from_secs(LONGEST)));
    }
    shell.effects.push(Effect::Sleep(total));
    shell.status = 0;
    Ok(())
}

fn forever(shell: &mut Shell<'_>) -> Result<(), Halt> {
    shell.effects.push(Effect::Forever);
    Err(Halt::Exit(0))
}

fn export(shell: &mut Shell<'_>, args: &[&str]) {
    for (name, value) in args.iter().filter_map(|arg| arg.split_once('=')) {
        shell.env.insert(name.to_owned(), value.to_owned());
    }
}

fn echo(shell: &mut Shell<'_>, args: &[&str]) {
    let flags = args
        .iter()
        .take_while(|arg| matches!(**arg, "-n" | "-e" | "-ne" | "-en"));
    let flags: Vec<&&str> = flags.collect();
    let text = args[flags.len()..].join(" ");
    let text = if flags.iter().any(|flag| flag.contains('e')) {
        unescape(&text)
    } else {
        text
    };
    if flags.iter().any(|flag| flag.contains('n')) {
        shell.print(text)
    } else {
        shell.print(text + "\n")
    }
}

fn printf(shell: &mut Shell<'_>, args: &[&str]) {
    let Some((format, values)) = args.split_first() else {
        return;
    };
    let mut text = unescape(format);
    for value in values {
        text = match text.find("%s").or_else(|| text.find("%d")) {
            Some(at) => format!("{}{value}{}", &text[..at], &text[at + 2..]),
            None => text,
        };
    }
    shell.print(text);
}

fn unescape(text: &str) -> String {
    text.replace("\\n", "\n").replace("\\t", "\t")
}

fn printenv(shell: &mut Shell<'_>, args: &[&str]) {
    match args.first() {
        None => {
            let all: String = shell
                .env
                .iter()
                .map(|(k, v)| format!("{k}={v}\n"))
                .collect();
            shell.print(all);
        }
        Some(name) => match shell.env.get(*name).cloned() {
            Some(value) => shell.print(value + "\n"),
            None => shell.status = 1,
        },
    }
}

fn cat(shell: &mut Shell<'_>, args: &[&str]) {
    let paths = operands(args);
    if paths.is_empty() {
        let input = shell.stdin.clone();
        return shell.print(input);
    }
    shell.status = 0;
    for path in paths {
        let whole = absolute(&shell.directory, path);
        match shell.files.read(&whole).cloned() {
            Some(content) => shell.effects.push(Effect::Print(content)),
            None => shell.fail(&format!(
                "cat: can't open '{path}': No such file or directory"
            )),
        }
    }
}

fn ls(shell: &mut Shell<'_>, args: &[&str]) {
    let paths = operands(args);
    let paths = if paths.is_empty() { vec!["."] } else { paths };
    for path in paths {
        let whole = absolute(&shell.directory, path);
        if shell.files.read(&whole).is_some() {
            shell.print(format!("{path}\n"));
        } else if shell.files.is_directory(&whole) {
            let names = shell.files.list(&whole);
            let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
            shell.print(lines);
        } else {
            shell.fail(&format!("ls: {path}: No such file or directory"));
        }
    }
}

fn write_each(shell: &mut Shell<'_>, args: &[&str]) {
    shell.status = 0;
    for path in operands(args) {
        let path = absolute(&shell.directory, path);
        if shell.files.read(&path).is_none() {
            shell.files.write(&path, Bytes::new());
        }
    }
}

fn remove(shell: &mut Shell<'_>, args: &[&str]) {
    let force = args
        .iter()
        .any(|arg| arg.starts_with('-') && arg.contains('f'));
    shell.status = 0;
    for path in operands(args) {
        let whole = absolute(&shell.directory, path);
        if !shell.files.remove(&whole) && !force {
            shell.fail(&format!(
                "rm: can't remove '{path}': No such file or directory"
            ));
        }
    }
}

fn test(shell: &mut Shell<'_>, args: &[&str]) {
    let args: Vec<&str> = args.iter().filter(|arg| **arg != "]").copied().collect();
    let path = |path: &str| absolute(&shell.directory, path);
    let holds = match args.as_slice() {
        ["-f", file] => shell.files.read(&path(file)).is_some(),
        ["-d", directory] => shell.files.is_directory(&path(directory)),
        ["-e", any] => {
            shell.files.read(&path(any)).is_some() || shell.files.is_directory(&path(any))
        }
        ["-n", text] => !text.is_empty(),
        ["-z", text] => text.is_empty(),
        [a, "=" | "==", b] => a == b,
        [a, "!=", b] => a != b,
        [text] => !text.is_empty(),
        _ => false,
    };
    shell.status = i32::from(!holds);
}

/// `tar cf - PATH` and `tar xmf - -C DIRECTORY`, as kubectl has them run.
fn tar_command(shell: &mut Shell<'_>, args: &[&str]) {
    let mode = args.first().map_or("", |arg| arg.trim_start_matches('-'));
    let mut directory = shell.directory.clone();
    let mut paths = Vec::new();
    let mut rest = args.iter().skip(1);
    while let Some(arg) = rest.next() {
        match *arg {
            "-C" => directory = absolute(&directory, rest.next().unwrap_or(&".")),
            "-" => {}
            "-f" => drop(rest.next()),
            arg if arg.starts_with('-') => {}
            path => paths.push(path),
        }
    }
    if mode.contains('x') {
        return extract(shell, &directory);
    }
    let mut entries = Vec::new();
    for path in paths {
        let whole = absolute(&directory, path);
        let name = |path: &str| path.trim_start_matches('/').to_owned();
        if let Some(content) = shell.files.read(&whole) {
            entries.push(Entry::File(name(path), content.clone()));
        } else if shell.files.is_directory(&whole) {
            entries.push(Entry::Directory(format!("{}/", name(path))));
            let below = shell.files.below(&whole);
            entries.extend(below.map(|(file, content)| {
                let relative = &file[whole.len()..];
                Entry::File(format!("{}{relative}", name(path)), content.clone())
            }));
        } else {
            return shell.fail(&format!("tar: {path}: No such file or directory"));
        }
    }
    shell.print(tar::write(&entries));
}

fn extract(shell: &mut Shell<'_>, directory: &str) {
    let input = shell.stdin.clone();
    let entries = match tar::read(&input) {
        Ok(entries) => entries,
        Err(error) => return shell.fail(&format!("tar: {error}")),
    };
    shell.status = 0;
    for entry in entries {
        match entry {
            Entry::Directory(name) => shell.files.make_directory(&absolute(directory, &name)),
            Entry::File(name, content) => {
                if !shell.files.write(&absolute(directory, &name), content) {
                    return shell.fail("tar: write error: No space left on device");
                }
            }
        }
    }
}
