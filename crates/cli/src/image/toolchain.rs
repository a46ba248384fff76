//! Which toolchain compiles a static program for a machine: musl, or glibc linked statically on the machine itself.
//!
//! musl is preferred: its programs are smaller, and can be made for other machines. With glibc the machine that compiles has to be
//! one of the kind that the image is for, and to have the static form of its C library, as Debian and Ubuntu do.

use std::env;
use std::path::{Path, PathBuf};

use super::find_program;
use super::program::Machine;
use crate::program::{CLibrary, Target};

/// What this machine has of what is needed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Present {
    /// The Rust target for musl.
    musl: bool,
    /// A C compiler for musl, which libraries that are partly written in C need.
    musl_compiler: bool,
    /// Whether it is a machine of the kind that is compiled for, with its own Rust target.
    native: bool,
}

/// How a static program for a machine is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Toolchain {
    Musl,
    /// With the C library of this machine as a part of the program.
    Glibc,
    /// Not at all: there is no toolchain for the machine.
    Missing,
}

impl Toolchain {
    /// The toolchain that this machine has for a machine.
    pub(super) fn find(machine: Machine) -> Self {
        choose(Present {
            musl: is_installed(machine.target),
            musl_compiler: has_musl_compiler(machine),
            native: Machine::here() == Some(machine) && is_installed(machine.gnu),
        })
    }

    /// What cargo compiles for; nothing where there is no toolchain.
    pub(super) fn target(self, machine: Machine) -> Option<Target> {
        match self {
            Self::Musl => Some(Target {
                triple: Some(machine.target),
                c_library: CLibrary::Usual,
            }),
            Self::Glibc => Some(Target {
                triple: Some(machine.gnu),
                c_library: CLibrary::Static,
            }),
            Self::Missing => None,
        }
    }

    /// What people should know about it, if it is not the preferred one.
    pub(super) fn note(self, machine: Machine) -> Option<String> {
        let target = machine.target;
        (self == Self::Glibc).then(|| {
            format!(
                "{} with the C library of this machine as a part of the program; smaller with musl: rustup target add {target}, and musl-tools",
                machine.gnu
            )
        })
    }
}

fn choose(present: Present) -> Toolchain {
    match present {
        Present {
            musl: true,
            musl_compiler: true,
            ..
        } => Toolchain::Musl,
        Present { native: true, .. } => Toolchain::Glibc,
        // Perhaps nothing of the program is written in C.
        Present { musl: true, .. } => Toolchain::Musl,
        _ => Toolchain::Missing,
    }
}

fn has_musl_compiler(machine: Machine) -> bool {
    let variable = format!("CC_{}", machine.target.replace('-', "_"));
    let own = || Machine::here() == Some(machine) && find_program("musl-gcc").is_some();
    env::var_os(variable).is_some() || own()
}

/// Whether the standard library for a target is installed.
fn is_installed(target: &str) -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = std::process::Command::new(rustc)
        .args(["--print", "target-libdir", "--target", target])
        .output();
    let Ok(output) = output else {
        return false;
    };
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    output.status.success() && Path::is_dir(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn musl_is_preferred_and_glibc_is_for_this_machine() {
        let check = |musl, musl_compiler, native, expected| {
            let present = Present {
                musl,
                musl_compiler,
                native,
            };
            assert_eq!(choose(present), expected, "{present:?}");
        };
        check(true, true, true, Toolchain::Musl);
        check(true, true, false, Toolchain::Musl);
        check(true, false, true, Toolchain::Glibc);
        check(true, false, false, Toolchain::Musl);
        check(false, true, true, Toolchain::Glibc);
        check(false, true, false, Toolchain::Missing);
        check(false, false, false, Toolchain::Missing);
    }
}
