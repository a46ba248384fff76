//! Questions about access, put together step by step.

use std::rc::Rc;

use super::super::authority::Inquiry;
use super::super::eval::Evaluator;
use super::super::types::Opaque;
use super::super::value::{Evaluated, Value, no_overload};

/// What asking costs, whatever the answer.
const CHECK: u64 = 350_000;

pub(super) fn call<'a>(eval: &mut Evaluator<'a>, name: &str, args: &[Value<'a>]) -> Evaluated<'a> {
    eval.charge(1)?;
    match args {
        [Value::Inquiry(inquiry), Value::Text(text)] if name == "check" => {
            eval.charge(CHECK)?;
            let asked = inquiry.at(inquiry.stage, |question| question.verb = text.to_string());
            let verdict = asked.authority.decide(&asked.question);
            Ok(Value::Verdict(Rc::new(verdict)))
        }
        [Value::Inquiry(inquiry), Value::Text(text)] => step(inquiry, name, text),
        [
            Value::Inquiry(inquiry),
            Value::Text(namespace),
            Value::Text(account),
        ] if name == "serviceAccount" => {
            let account = (namespace.to_string(), account.to_string());
            Ok(Value::Inquiry(inquiry.at(Opaque::Authorizer, |q| {
                q.service_account = Some(account);
            })))
        }
        [Value::Verdict(verdict)] => match name {
            "allowed" => Ok(Value::Bool(verdict.allowed)),
            "reason" => Ok(Value::text(verdict.reason.as_str())),
            "errored" => Ok(Value::Bool(false)),
            "error" => Ok(Value::text("")),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

fn step<'a>(inquiry: &Inquiry<'a>, name: &str, text: &str) -> Evaluated<'a> {
    let text = text.to_owned();
    let next = match (inquiry.stage, name) {
        (Opaque::Authorizer, "path") => inquiry.at(Opaque::PathCheck, |q| q.path = Some(text)),
        (Opaque::Authorizer, "group") => inquiry.at(Opaque::GroupCheck, |q| q.group = text),
        (Opaque::GroupCheck, "resource") => {
            inquiry.at(Opaque::ResourceCheck, |q| q.resource = text)
        }
        (Opaque::ResourceCheck, "subresource") => {
            inquiry.at(inquiry.stage, |q| q.subresource = text)
        }
        (Opaque::ResourceCheck, "namespace") => inquiry.at(inquiry.stage, |q| q.namespace = text),
        (Opaque::ResourceCheck, "name") => inquiry.at(inquiry.stage, |q| q.name = text),
        _ => return no_overload(),
    };
    Ok(Value::Inquiry(next))
}
