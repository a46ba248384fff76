//! `kubewright completion`: a script that completes our commands in a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

/// Print a script that completes this command in your shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kubewright completion bash > /etc/bash_completion.d/kubewright\n  \
    kubewright completion zsh > \"${fpath[1]}/_kubewright\"")]
pub(crate) struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    pub(crate) fn run(self) {
        let mut command = crate::Arguments::command();
        clap_complete::generate(
            self.shell,
            &mut command,
            "kubewright",
            &mut std::io::stdout(),
        );
    }
}
