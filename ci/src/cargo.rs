//! Cargo inside of cargo, which is to build what it would build at a terminal.

use std::process::Command;

/// How the variables begin that cargo sets for a program that it runs, about the package of that program.
const OF_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Keeps what the cargo that runs this program says of its package from another cargo. The build script of `ring` is run again
/// when such a variable changes, and everything that speaks TLS is compiled again after it.
pub fn forget_package(cargo: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if OF_PACKAGE.iter().any(|prefix| text.starts_with(prefix)) {
            cargo.env_remove(&name);
        }
    }
    cargo
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo sets these for tests as well.
    #[test]
    fn package_is_not_inherited() {
        let mut command = Command::new("env");
        let output = forget_package(&mut command).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let inherited = text.lines().find(|line| line.starts_with("CARGO_PKG_"));
        assert_eq!(inherited, None);
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some());
    }
}
