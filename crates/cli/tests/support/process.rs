//! A program that runs until it is asked to end, and what it says meanwhile.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// How long nothing may be said. Only a test that fails waits for so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that runs. It is killed when this goes.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    /// Lines that nobody has asked for yet.
    waiting: Vec<String>,
    said: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            // Held open until this goes.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        let (sender, lines) = channel();
        forward(child.stdout.take().expect("it is a pipe"), sender.clone());
        forward(child.stderr.take().expect("it is a pipe"), sender);
        Self {
            child,
            lines,
            waiting: Vec::new(),
            said: String::new(),
        }
    }

    /// The number of the process.
    pub(crate) fn id(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// Waits for a line that has this in it and that was not given before. What two programs say comes in any order.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            let found = self.waiting.iter().position(|line| line.contains(text));
            if let Some(place) = found {
                return self.waiting.remove(place);
            }
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("nobody says {text:?}, but:\n{}", self.said);
            };
            self.said.push_str(&line);
            self.said.push('\n');
            self.waiting.push(line);
        }
    }

    /// Asks the program to end, and waits until it and all that it started have. Gives how it ended and all that it said.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status();
        assert!(asked.is_ok_and(|status| status.success()), "it runs");
        // The pipes close when the last of those that have them ends.
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.said.push_str(&line);
            self.said.push('\n');
        }
        let status = self.child.wait().expect("it ends");
        (status, std::mem::take(&mut self.said))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn forward(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    });
}
