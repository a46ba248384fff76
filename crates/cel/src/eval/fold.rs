//! Macros over lists, maps and optionals.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::ast::{Fold, FoldKind};
use super::super::cost;
use super::super::equal;
use super::super::value::{EvalError, Evaluated, Map, Value, fail, no_overload};
use super::Evaluator;

/// One step of a macro: its variables.
type Step<'a> = (Evaluated<'a>, Option<Evaluated<'a>>);

impl<'a> Evaluator<'a> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Evaluated<'a> {
        let range = self.node(&fold.range)?;
        if matches!(fold.kind, FoldKind::OptionalMap | FoldKind::OptionalFlatMap) {
            return self.optional_fold(fold, &range);
        }
        self.work(range.size())?;
        let steps = steps(range, fold.second.is_some())?;
        match fold.kind {
            FoldKind::All => self.quantified(fold, steps, false),
            FoldKind::Exists => self.quantified(fold, steps, true),
            FoldKind::ExistsOne => self.exactly_one(fold, steps),
            FoldKind::Filter | FoldKind::Map | FoldKind::SortBy => self.listed(fold, steps),
            FoldKind::TransformMap | FoldKind::TransformMapEntry => self.mapped(fold, steps),
            FoldKind::OptionalMap | FoldKind::OptionalFlatMap => {
                unreachable!("optionals are not ranges")
            }
        }
    }

    /// Evaluates something with the variables of one step.
    fn within<T>(
        &mut self,
        fold: &'a Fold,
        step: Step<'a>,
        evaluate: impl FnOnce(&mut Self) -> Result<T, EvalError>,
    ) -> Result<T, EvalError> {
        let outer = self.scope.len();
        self.scope.push((&fold.variable, step.0?));
        if let (Some(name), Some(value)) = (&fold.second, step.1) {
            self.scope.push((name, value?));
        }
        let result = evaluate(self);
        self.scope.truncate(outer);
        result
    }

    /// `all` is decided by the first `false`, `exists` by the first `true`; failures count only when nothing decides.
    fn quantified(
        &mut self,
        fold: &'a Fold,
        steps: Vec<Step<'a>>,
        decisive: bool,
    ) -> Evaluated<'a> {
        let mut failure = None;
        for step in steps {
            self.charge(if decisive { 4 } else { 3 })?;
            match self.within(fold, step, |eval| eval.node(&fold.body)) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => return no_overload(),
                Err(EvalError::Budget) => return Err(EvalError::Budget),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn exactly_one(&mut self, fold: &'a Fold, steps: Vec<Step<'a>>) -> Evaluated<'a> {
        let mut found = 0;
        for step in steps {
            self.charge(2)?;
            match self.within(fold, step, |eval| eval.node(&fold.body))? {
                Value::Bool(value) => found += u32::from(value),
                _ => return no_overload(),
            }
        }
        Ok(Value::Bool(found == 1))
    }

    /// Whether the filter of a macro, if it has one, lets the current step through.
    fn passes(&mut self, fold: &'a Fold) -> Result<bool, EvalError> {
        match fold
            .filter
            .as_ref()
            .map(|filter| self.node(filter))
            .transpose()?
        {
            None => Ok(true),
            Some(Value::Bool(value)) => Ok(value),
            Some(_) => no_overload(),
        }
    }

    fn listed(&mut self, fold: &'a Fold, steps: Vec<Step<'a>>) -> Evaluated<'a> {
        let mut made: Vec<(Value<'a>, Value<'a>)> = Vec::new();
        for step in steps {
            let item = step.0.clone()?;
            self.charge(1)?;
            let value = self.within(fold, step, |eval| {
                if !eval.passes(fold)? {
                    return Ok(None);
                }
                eval.node(&fold.body).map(Some)
            })?;
            match (fold.kind, value) {
                (_, None) | (FoldKind::Filter, Some(Value::Bool(false))) => continue,
                (FoldKind::Filter, Some(Value::Bool(true))) => made.push((item, Value::Null)),
                (FoldKind::Filter, _) => return no_overload(),
                (FoldKind::SortBy, Some(key)) => made.push((item, key)),
                (_, Some(value)) => made.push((value, Value::Null)),
            }
            self.charge(cost::LIST + 1)?;
        }
        if fold.kind == FoldKind::SortBy {
            self.sort(&mut made)?;
        }
        Ok(Value::list(
            made.into_iter().map(|(item, _)| item).collect(),
        ))
    }

    /// Sorts items by their keys.
    fn sort(&mut self, items: &mut [(Value<'a>, Value<'a>)]) -> Result<(), EvalError> {
        let steps = items.len() as u64;
        self.work(steps * u64::from(steps.max(1).ilog2() + 1))?;
        let mut failure = None;
        items.sort_by(|(_, a), (_, b)| match equal::compare(a, b) {
            Ok(Some(order)) => order,
            Ok(None) => std::cmp::Ordering::Equal,
            Err(error) => {
                failure = Some(error);
                std::cmp::Ordering::Equal
            }
        });
        failure.map_or(Ok(()), Err)
    }

    fn mapped(&mut self, fold: &'a Fold, steps: Vec<Step<'a>>) -> Evaluated<'a> {
        let mut made = BTreeMap::new();
        for step in steps {
            let key = step.0.clone()?;
            self.charge(cost::MAP + 3)?;
            let value = self.within(fold, step, |eval| {
                if !eval.passes(fold)? {
                    return Ok(None);
                }
                eval.node(&fold.body).map(Some)
            })?;
            let Some(value) = value else { continue };
            if fold.kind == FoldKind::TransformMap {
                made.insert(key.key()?, (key, value));
                continue;
            }
            let Value::Map(entries) = value else {
                return no_overload();
            };
            self.work(entries.len() as u64)?;
            for (key, value) in entries.entries() {
                let name = key.key()?;
                if made.insert(name, (key, value?)).is_some() {
                    return fail("insert failed: key already exists");
                }
            }
        }
        Ok(Value::Map(Map::Made(Rc::new(made))))
    }

    fn optional_fold(&mut self, fold: &'a Fold, range: &Value<'a>) -> Evaluated<'a> {
        self.charge(2)?;
        let value = match range {
            Value::Optional(Some(value)) => (**value).clone(),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            _ => return no_overload(),
        };
        let body = self.within(fold, (Ok(value), None), |eval| eval.node(&fold.body))?;
        match (fold.kind, body) {
            (FoldKind::OptionalMap, body) => Ok(Value::some(body)),
            (_, body @ Value::Optional(_)) => Ok(body),
            _ => no_overload(),
        }
    }
}

fn steps(range: Value<'_>, two: bool) -> Result<Vec<Step<'_>>, EvalError> {
    Ok(match range {
        Value::List(list) if two => list
            .items()
            .enumerate()
            .map(|(at, item)| (Ok(Value::Int(at as i64)), Some(item)))
            .collect(),
        Value::List(list) => list.items().map(|item| (item, None)).collect(),
        Value::Map(map) => map
            .entries()
            .into_iter()
            .map(|(key, value)| (Ok(key), two.then_some(value)))
            .collect(),
        _ => return no_overload(),
    })
}
