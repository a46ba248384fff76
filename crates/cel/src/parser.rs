//! Reads the text of an expression.
//!
//! Written by hand because it reads what anybody may send: nesting is counted before the stack is used, and the work
//! is linear in the length. Parsers generated for the grammar fail on both with a few hundred brackets.

mod operand;

use super::ast::{Call, Kind, Literal, Node};
use super::lexer::{self, Token, TokenKind};
use super::macros;
use super::source::{CompileError, Issue};
use super::types::type_named;

/// Longest expression, in characters.
pub(crate) const MAX_LENGTH: usize = 100_000;
/// Deepest nesting of brackets and operators. The API server allows 250; unoptimised builds would need more stack for
/// that than a thread has, and written rules stay below 20.
pub(crate) const MAX_DEPTH: u16 = 100;

/// Symbol, function, and how tightly it binds.
const OPERATORS: [(&str, &str, u8); 14] = [
    ("||", "_||_", 0),
    ("&&", "_&&_", 1),
    ("<", "_<_", 2),
    ("<=", "_<=_", 2),
    (">=", "_>=_", 2),
    (">", "_>_", 2),
    ("==", "_==_", 2),
    ("!=", "_!=_", 2),
    ("in", "@in", 2),
    ("+", "_+_", 3),
    ("-", "_-_", 3),
    ("*", "_*_", 4),
    ("/", "_/_", 4),
    ("%", "_%_", 4),
];

const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, \
                       STRING, BYTES, IDENTIFIER}";

/// Parses an expression.
pub(crate) fn parse(source: &str) -> Result<Node, CompileError> {
    let length = source.chars().count();
    if length > MAX_LENGTH {
        let message =
            format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(CompileError::new("", vec![Issue { at: 0, message }]));
    }
    let fail = |issues| CompileError::new(source, issues);
    let tokens = lexer::tokens(source).map_err(fail)?;
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        depth: 0,
    };
    let parsed = parser.whole();
    parsed.map_err(|issue| fail(vec![issue]))
}

struct Parser<'a> {
    source: &'a str,
    /// Never empty: the last one is [`TokenKind::End`].
    tokens: Vec<Token>,
    at: usize,
    depth: u16,
}

type Parsed<T> = Result<T, Issue>;

impl Parser<'_> {
    fn whole(&mut self) -> Parsed<Node> {
        let node = self.expression()?;
        if self.token().kind == TokenKind::End {
            return Ok(node);
        }
        let last = self.at + 2 == self.tokens.len();
        let what = if last { "extraneous" } else { "mismatched" };
        Err(self.unexpected(what, "<EOF>"))
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at]
    }

    fn here(&self) -> usize {
        self.token().at
    }

    /// Steps over the current token; the end stays.
    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token().kind, TokenKind::Symbol(found) if found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Parsed<()> {
        if self.take(symbol) {
            return Ok(());
        }
        let message = format!("Syntax error: missing '{symbol}' at '{}'", self.found());
        Err(self.issue(self.here(), message))
    }

    fn found(&self) -> &str {
        let token = self.token();
        match token.kind {
            TokenKind::End => "<EOF>",
            _ => &self.source[token.at..token.end],
        }
    }

    fn unexpected(&self, what: &str, expected: &str) -> Issue {
        let message = format!(
            "Syntax error: {what} input '{}' expecting {expected}",
            self.found()
        );
        self.issue(self.here(), message)
    }

    fn issue(&self, at: usize, message: String) -> Issue {
        Issue { at, message }
    }

    /// A node that is not too deep for everybody who recurses over it.
    fn node(&self, at: usize, kind: Kind) -> Parsed<Node> {
        self.shallow(Node::new(at, kind))
    }

    fn shallow(&self, node: Node) -> Parsed<Node> {
        if node.depth > MAX_DEPTH {
            return Err(self.issue(node.at, "max recursion depth exceeded".to_owned()));
        }
        Ok(node)
    }

    /// Everything that can contain itself comes through here.
    fn expression(&mut self) -> Parsed<Node> {
        if self.depth >= MAX_DEPTH {
            let message = format!("expression recursion limit exceeded: {MAX_DEPTH}");
            return Err(self.issue(self.here(), message));
        }
        self.depth += 1;
        let mut node = self.operators(0)?;
        let at = self.here();
        if self.take("?") {
            let yes = self.operators(0)?;
            self.expect(":")?;
            let no = self.expression()?;
            node = self.node(at, Kind::Conditional(Box::new([node, yes, no])))?;
        }
        self.depth -= 1;
        Ok(node)
    }

    /// Operands joined by operators that bind at least this tightly; all of them are left-associative.
    fn operators(&mut self, level: u8) -> Parsed<Node> {
        let mut left = self.unary()?;
        while let Some((function, binds)) = self.operator(level) {
            let at = self.here();
            self.advance();
            let right = self.operators(binds + 1)?;
            left = self.joined(at, function, left, right)?;
        }
        Ok(left)
    }

    fn operator(&self, level: u8) -> Option<(&'static str, u8)> {
        let TokenKind::Symbol(symbol) = self.token().kind else {
            return None;
        };
        let (_, function, binds) = OPERATORS.iter().find(|(known, ..)| *known == symbol)?;
        (*binds >= level).then_some((*function, *binds))
    }

    /// `a && b && c` is one node, so that long chains are not deep.
    fn joined(&self, at: usize, function: &str, left: Node, right: Node) -> Parsed<Node> {
        let mut left = left;
        match (function, &mut left.kind) {
            ("_&&_", Kind::And(nodes)) | ("_||_", Kind::Or(nodes)) => {
                left.depth = left.depth.max(right.depth + 1);
                nodes.push(right);
                self.shallow(left)
            }
            ("_&&_", _) => self.node(at, Kind::And(vec![left, right])),
            ("_||_", _) => self.node(at, Kind::Or(vec![left, right])),
            _ => self.call(at, function, None, vec![left, right]),
        }
    }

    fn call(
        &self,
        at: usize,
        function: &str,
        target: Option<Node>,
        args: Vec<Node>,
    ) -> Parsed<Node> {
        let call = Call {
            function: function.into(),
            target: target.map(Box::new),
            args,
        };
        self.node(at, Kind::Call(call))
    }

    /// Pairs of `!` and of `-` cancel each other out.
    fn unary(&mut self) -> Parsed<Node> {
        let at = self.here();
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let mut count = 0usize;
            while self.take(symbol) {
                count += 1;
            }
            if count == 0 {
                continue;
            }
            if symbol == "-"
                && count == 1
                && let Some(number) = self.negative(at)?
            {
                return self.members(number);
            }
            let operand = self.member()?;
            return if count.is_multiple_of(2) {
                Ok(operand)
            } else {
                self.call(at, function, None, vec![operand])
            };
        }
        self.member()
    }

    /// A number right after its sign, so that the smallest integer can be written.
    fn negative(&mut self, at: usize) -> Parsed<Option<Node>> {
        let literal = match self.token().kind {
            TokenKind::Double(value) => Literal::Double(-value),
            TokenKind::Int(value) => match 0i64.checked_sub_unsigned(value) {
                Some(value) => Literal::Int(value),
                None => return Err(self.issue(at, "invalid int literal".to_owned())),
            },
            _ => return Ok(None),
        };
        self.advance();
        self.node(at, Kind::Literal(literal)).map(Some)
    }

    fn member(&mut self) -> Parsed<Node> {
        let primary = self.primary()?;
        self.members(primary)
    }

    /// `.field`, `.?field`, `.method(…)`, `[index]` and `[?index]`, as many as follow.
    fn members(&mut self, mut node: Node) -> Parsed<Node> {
        loop {
            let at = self.here();
            if self.take(".") {
                let optional = self.take("?");
                let field = self.field_name()?;
                let open = self.here();
                node = if optional {
                    self.node(at, Kind::OptionalSelect(Box::new(node), field))?
                } else if self.take("(") {
                    let args = self.arguments(")")?;
                    macros::method(open, &field, node, args)?
                } else {
                    self.selection_or_object(at, node, field)?
                };
            } else if self.take("[") {
                let optional = self.take("?");
                let index = self.expression()?;
                self.expect("]")?;
                let function = if optional { "_[?_]" } else { "_[_]" };
                node = self.call(at, function, None, vec![node, index])?;
            } else {
                return Ok(node);
            }
            node = self.shallow(node)?;
        }
    }

    /// `operand.field`, or `Type.Name{…}` when that is what follows.
    fn selection_or_object(&mut self, at: usize, operand: Node, field: Box<str>) -> Parsed<Node> {
        let open = self.here();
        let select = selection(at, operand, field);
        match select.qualified_name() {
            Some(name) if self.is("{") => self.construct(open, &name),
            _ => Ok(select),
        }
    }

    fn field_name(&mut self) -> Parsed<Box<str>> {
        let name = match &self.token().kind {
            TokenKind::Ident(name) if !matches!(&**name, "true" | "false" | "null") => name.clone(),
            TokenKind::Quoted(_) => {
                return Err(self.issue(self.here(), "unsupported syntax: '`'".to_owned()));
            }
            _ => {
                let message = format!(
                    "Syntax error: no viable alternative at input '.{}'",
                    self.found()
                );
                return Err(self.issue(self.here(), message));
            }
        };
        self.advance();
        Ok(name)
    }

    /// A comma-separated list of expressions and what closes it.
    fn arguments(&mut self, close: &str) -> Parsed<Vec<Node>> {
        let mut args = Vec::new();
        if self.take(close) {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if !self.take(",") {
                self.expect(close)?;
                return Ok(args);
            }
        }
    }
}

/// `operand.field`, or a type whose name has dots in it.
fn selection(at: usize, operand: Node, field: Box<str>) -> Node {
    let select = Node::new(at, Kind::Select(Box::new(operand), field));
    match select.qualified_name() {
        Some(name) if type_named(&name).is_some() => Node::new(at, Kind::Ident(name.into())),
        _ => select,
    }
}

#[cfg(test)]
mod tests;
