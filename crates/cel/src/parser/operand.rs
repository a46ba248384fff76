//! Operands: literals, names, calls, lists and maps.

use super::super::ast::{Construct, Element, Entry, FieldEntry, Kind, Literal, Node};
use super::super::escape::RESERVED;
use super::super::lexer::TokenKind;
use super::super::macros;
use super::{OPERAND, Parsed, Parser};

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed<Node> {
        let at = self.here();
        if self.take("(") {
            let node = self.expression()?;
            self.expect(")")?;
            return Ok(node);
        }
        if self.take("[") {
            return self.list(at);
        }
        if self.take("{") {
            return self.map(at);
        }
        let leading_dot = self.take(".");
        let literal = match &self.token().kind {
            TokenKind::Ident(name) => return self.identifier(name.clone(), leading_dot),
            _ if leading_dot => return Err(self.unexpected("mismatched", "IDENTIFIER")),
            TokenKind::Int(value) => match i64::try_from(*value) {
                Ok(value) => Literal::Int(value),
                Err(_) => return Err(self.issue(at, "invalid int literal".to_owned())),
            },
            TokenKind::Uint(value) => Literal::Uint(*value),
            TokenKind::Double(value) => Literal::Double(*value),
            TokenKind::Text(text) => Literal::Text(text.clone()),
            TokenKind::Bytes(bytes) => Literal::Bytes(bytes.clone()),
            _ => return Err(self.unexpected("mismatched", OPERAND)),
        };
        self.advance();
        self.node(at, Kind::Literal(literal))
    }

    fn identifier(&mut self, name: Box<str>, leading_dot: bool) -> Parsed<Node> {
        let at = self.here();
        self.advance();
        let literal = match &*name {
            "true" => Some(Literal::Bool(true)),
            "false" => Some(Literal::Bool(false)),
            "null" => Some(Literal::Null),
            _ => None,
        };
        if let Some(literal) = literal.filter(|_| !leading_dot) {
            return self.node(at, Kind::Literal(literal));
        }
        let open = self.here();
        if self.take("(") {
            let args = self.arguments(")")?;
            return macros::function(open, &name, args);
        }
        if self.is("{") {
            return self.construct(open, &name);
        }
        if RESERVED.contains(&&*name) {
            return Err(self.issue(at, format!("reserved identifier: {name}")));
        }
        self.node(at, Kind::Ident(name))
    }

    /// `{field: value}` after the name of a type.
    pub(super) fn construct(&mut self, at: usize, type_name: &str) -> Parsed<Node> {
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.take("}") {
            let optional = self.take("?");
            let name = self.field_name()?;
            self.expect(":")?;
            let value = self.expression()?;
            fields.push(FieldEntry {
                optional,
                name,
                value,
            });
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        let construct = Construct {
            type_name: type_name.into(),
            fields,
        };
        self.node(at, Kind::Construct(Box::new(construct)))
    }

    fn list(&mut self, at: usize) -> Parsed<Node> {
        let mut items = Vec::new();
        while !self.take("]") {
            let optional = self.take("?");
            let value = self.expression()?;
            items.push(Element { optional, value });
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        self.node(at, Kind::List(items))
    }

    fn map(&mut self, at: usize) -> Parsed<Node> {
        let mut entries = Vec::new();
        while !self.take("}") {
            let optional = self.take("?");
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push(Entry {
                optional,
                key,
                value,
            });
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        self.node(at, Kind::Map(entries))
    }
}
