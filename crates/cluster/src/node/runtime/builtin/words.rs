//! A script taken apart: commands, how they are joined, their words with quotes and variables resolved.

use std::collections::BTreeMap;

/// When a command is carried out, by what came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    Always,
    /// After `&&`: only if the command before succeeded.
    IfGood,
    /// After `||`: only if the command before failed.
    IfBad,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) joint: Joint,
    pub(super) words: Vec<String>,
    /// The file that its output goes to, and whether it is added to what is there.
    pub(super) redirect: Option<(String, bool)>,
}

/// Reads a script; nothing when it uses what is not known here: pipes, substitution, functions, `if`.
pub(super) fn parse(text: &str, env: &BTreeMap<String, String>) -> Option<Vec<Words>> {
    let mut reader = Reader {
        rest: text.chars().collect(),
        at: 0,
        env,
    };
    let (mut commands, mut joint) = (Vec::new(), Joint::Always);
    loop {
        let (words, redirect) = reader.command()?;
        if !words.is_empty() {
            commands.push(Words {
                joint,
                words,
                redirect,
            });
        }
        joint = match reader.separator()? {
            Some(next) => next,
            None => return Some(commands),
        };
    }
}

struct Reader<'a> {
    rest: Vec<char>,
    at: usize,
    env: &'a BTreeMap<String, String>,
}

type Command = (Vec<String>, Option<(String, bool)>);

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    fn command(&mut self) -> Option<Command> {
        let (mut words, mut redirect) = (Vec::new(), None);
        loop {
            while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
                self.at += 1;
            }
            match self.peek() {
                None | Some(';' | '\n' | '&' | '|') => return Some((words, redirect)),
                Some('#') => self.skip_comment(),
                Some('>') => {
                    self.at += 1;
                    let append = self.peek() == Some('>');
                    if append {
                        self.at += 1;
                    }
                    if self.peek() == Some('&') {
                        return None;
                    }
                    while self.peek() == Some(' ') {
                        self.at += 1;
                    }
                    redirect = Some((self.word()?, append));
                }
                Some('<' | '(' | ')' | '{' | '`') => return None,
                Some(_) => {
                    let word = self.word()?;
                    match word.as_str() {
                        // Errors go where output goes, which is where they are shown anyway.
                        "2" if self.peek() == Some('>') => self.skip_redirection(),
                        "if" | "for" | "case" | "function" if words.is_empty() => return None,
                        _ => words.push(word),
                    }
                }
            }
        }
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    /// `2>&1`, `2>/dev/null`.
    fn skip_redirection(&mut self) {
        while self.peek().is_some_and(|c| !c.is_whitespace() && c != ';') {
            self.at += 1;
        }
    }

    /// What joins the next command to this one; nothing at the end.
    fn separator(&mut self) -> Option<Option<Joint>> {
        Some(match self.next() {
            None => None,
            Some('&') if self.peek() == Some('&') => {
                self.at += 1;
                Some(Joint::IfGood)
            }
            Some('|') if self.peek() == Some('|') => {
                self.at += 1;
                Some(Joint::IfBad)
            }
            // Pipes and what runs in the background are not known.
            Some('&' | '|') => return None,
            Some(_) => Some(Joint::Always),
        })
    }

    fn word(&mut self) -> Option<String> {
        let mut word = String::new();
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '>' | '<' => break,
                '\'' => {
                    self.at += 1;
                    loop {
                        match self.next()? {
                            '\'' => break,
                            c => word.push(c),
                        }
                    }
                }
                '"' => self.quoted(&mut word)?,
                '\\' => {
                    self.at += 1;
                    word.extend(self.next().filter(|c| *c != '\n'));
                }
                '$' => word.push_str(&self.variable()?),
                '`' | '(' | ')' => return None,
                c => {
                    self.at += 1;
                    word.push(c);
                }
            }
        }
        Some(word)
    }

    fn quoted(&mut self, word: &mut String) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                '"' => {
                    self.at += 1;
                    return Some(());
                }
                '\\' => {
                    self.at += 1;
                    match self.next()? {
                        c @ ('"' | '\\' | '$' | '`') => word.push(c),
                        c => word.extend(['\\', c]),
                    }
                }
                '$' => word.push_str(&self.variable()?),
                '`' => return None,
                c => {
                    self.at += 1;
                    word.push(c);
                }
            }
        }
    }

    /// `$NAME`, `${NAME}`, `$?`; nothing for substitution of commands.
    fn variable(&mut self) -> Option<String> {
        self.at += 1;
        let mut name = String::new();
        match self.peek() {
            Some('(') => return None,
            // The code of the last command is known when its turn comes.
            Some('?') => {
                self.at += 1;
                return Some("\u{0}?".to_owned());
            }
            Some('{') => {
                self.at += 1;
                loop {
                    match self.next()? {
                        '}' => break,
                        c => name.push(c),
                    }
                }
            }
            _ => {
                while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || *c == '_') {
                    self.at += 1;
                    name.push(c);
                }
            }
        }
        if name.is_empty() {
            return Some("$".to_owned());
        }
        if let Some((name, default)) = name.split_once(":-") {
            let found = self.env.get(name).filter(|value| !value.is_empty());
            return Some(found.cloned().unwrap_or_else(|| default.to_owned()));
        }
        if !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        Some(self.env.get(&name).cloned().unwrap_or_default())
    }
}
