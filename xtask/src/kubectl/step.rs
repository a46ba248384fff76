//! One step of the script as data: what is done, and what has to come back.

use http::Method;

/// What stands in a manifest for the output of the step before, such as the uid of an owner.
pub(crate) const PRINTED_BEFORE: &str = "PRINTED-BEFORE";

/// Steps that belong together: they may rely on those before them, and on nothing of other groups.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) world: World,
    pub(crate) steps: Vec<Step>,
}

/// What a group of steps is run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum World {
    /// The API server alone: nothing moves by itself.
    Server,
    /// A cluster with all controllers and three nodes.
    Cluster,
}

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) action: Action,
    /// The exit code of kubectl, or the status code of an HTTP answer.
    pub(crate) code: i32,
    pub(crate) stdout: Vec<Expect>,
    pub(crate) stderr: Vec<Expect>,
    pub(crate) needs: Needs,
}

/// What is done.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    /// One call of kubectl, run to its end.
    Call(Call),
    /// A call that goes on, such as `get --watch`; when `first` was printed (to either stream), `change` is called. The call is stopped as
    /// soon as it has printed what is expected of it.
    Meanwhile {
        call: Call,
        first: &'static str,
        change: Call,
    },
    /// One plain HTTP request.
    Http {
        method: Method,
        path: &'static str,
        content_type: &'static str,
        body: &'static str,
    },
}

/// A call of kubectl.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    /// The arguments as one would type them: split at spaces, single quotes keep words together.
    pub(crate) line: &'static str,
    /// [`PRINTED_BEFORE`] in it stands for what the step before has printed.
    pub(crate) stdin: &'static str,
    /// What `kubectl edit` calls as its editor.
    pub(crate) editor: &'static str,
}

/// What an output has to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Contains(&'static str),
    Lacks(&'static str),
    Equals(&'static str),
    Matches(&'static str),
    Once(&'static str),
}

/// What a step needs of kubectl or the server; without it the step is left out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    /// The oldest kubectl (1.x) that can do it.
    pub(crate) minor: u32,
    /// It reads the OpenAPI document, which kubectl up to 1.28 can do only as protobuf.
    pub(crate) openapi: bool,
}

/// A call of kubectl that succeeds.
pub(crate) fn kubectl(line: &'static str) -> Step {
    Step::of(Action::Call(Call {
        line,
        ..Call::default()
    }))
}

/// A call of kubectl with a manifest on its standard input.
pub(crate) fn kubectl_with(line: &'static str, stdin: &'static str) -> Step {
    Step::of(Action::Call(Call {
        line,
        stdin,
        ..Call::default()
    }))
}

/// `kubectl edit` with a program that edits.
pub(crate) fn edit(line: &'static str, editor: &'static str) -> Step {
    Step::of(Action::Call(Call {
        line,
        editor,
        ..Call::default()
    }))
}

/// A call that goes on while, once `first` is printed, another call changes something.
pub(crate) fn meanwhile(line: &'static str, first: &'static str, change: &'static str) -> Step {
    let call = |line| Call {
        line,
        ..Call::default()
    };
    Step::of(Action::Meanwhile {
        call: call(line),
        first,
        change: call(change),
    })
}

/// A plain HTTP request that is answered with 200.
pub(crate) fn http(method: Method, path: &'static str, body: &'static str) -> Step {
    let content_type = match method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let mut step = Step::of(Action::Http {
        method,
        path,
        content_type,
        body,
    });
    step.code = 200;
    step
}

impl Step {
    fn of(action: Action) -> Self {
        Self {
            action,
            code: 0,
            stdout: Vec::new(),
            stderr: Vec::new(),
            needs: Needs::default(),
        }
    }

    /// Standard output, or the body of an answer, contains this.
    pub(crate) fn prints(mut self, text: &'static str) -> Self {
        self.stdout.push(Expect::Contains(text));
        self
    }

    /// Standard output contains this exactly once.
    pub(crate) fn prints_once(mut self, text: &'static str) -> Self {
        self.stdout.push(Expect::Once(text));
        self
    }

    /// Standard output is exactly this, but for the white space at its end.
    pub(crate) fn prints_exactly(mut self, text: &'static str) -> Self {
        self.stdout.push(Expect::Equals(text));
        self
    }

    /// Standard output matches this expression; `^` and `$` are the ends of a line.
    pub(crate) fn matches(mut self, pattern: &'static str) -> Self {
        self.stdout.push(Expect::Matches(pattern));
        self
    }

    /// Standard output does not contain this.
    pub(crate) fn lacks(mut self, text: &'static str) -> Self {
        self.stdout.push(Expect::Lacks(text));
        self
    }

    /// Standard error contains this.
    pub(crate) fn complains(mut self, text: &'static str) -> Self {
        self.stderr.push(Expect::Contains(text));
        self
    }

    /// The exit code of a failing call or the status code of a plain HTTP answer.
    pub(crate) fn code(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// The call fails and says this.
    pub(crate) fn fails(self, text: &'static str) -> Self {
        self.code(1).complains(text)
    }

    /// Only for kubectl 1.`minor` and later; of two such bounds the later one counts.
    pub(crate) fn since(mut self, minor: u32) -> Self {
        self.needs.minor = self.needs.minor.max(minor);
        self
    }

    /// Only where kubectl can read the OpenAPI document.
    pub(crate) fn needs_openapi(mut self) -> Self {
        self.needs.openapi = true;
        self
    }

    /// The step as one would type it.
    pub(crate) fn title(&self) -> String {
        match &self.action {
            Action::Call(call) => format!("kubectl {}", call.line),
            Action::Meanwhile { call, change, .. } => {
                format!("kubectl {} & kubectl {}", call.line, change.line)
            }
            Action::Http { method, path, .. } => format!("{method} {path}"),
        }
    }
}

impl Call {
    /// The arguments as words.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut quoted = false;
        for c in self.line.chars() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                ' ' if !quoted => words.extend(word.take()),
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        let words = |line| {
            Call {
                line,
                ..Call::default()
            }
            .words()
        };
        assert_eq!(words("get  pods -A"), ["get", "pods", "-A"]);
        assert_eq!(
            words("patch -p '{\"a\": 1}' x"),
            ["patch", "-p", "{\"a\": 1}", "x"]
        );
        assert_eq!(
            words("get -o=jsonpath='{.a} {.b}' ''"),
            ["get", "-o=jsonpath={.a} {.b}", ""]
        );
    }
}
