//! The types of macros, and of the variables they bring.

use super::super::ast::{Fold, FoldKind, Node};
use super::super::cost::{self, Estimate};
use super::super::types::Type;
use super::{Checked, Checker, Local};

impl<'a> Checker<'a> {
    pub(super) fn fold(&mut self, at: usize, fold: &'a Fold) -> (Type, Estimate) {
        let range = self.node(&fold.range);
        if matches!(fold.kind, FoldKind::OptionalMap | FoldKind::OptionalFlatMap) {
            return self.optional_fold(at, fold, range);
        }
        let (first, second) = self.iterated(&fold.range, &range, fold.second.is_some());
        let outer = self.scope.len();
        self.scope.push(local(&fold.variable, first));
        if let Some(name) = &fold.second {
            self.scope.push(local(name, second));
        }
        let filter = fold.filter.as_ref().map(|filter| self.condition(filter));
        let body = match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne | FoldKind::Filter => {
                self.condition(&fold.body)
            }
            _ => self.node(&fold.body),
        };
        self.scope.truncate(outer);
        let size = body.estimate.known_size(&body.ty);
        let body_estimate = Estimate {
            size,
            ..body.estimate.clone()
        };
        let filter = filter.as_ref().map(|filter| &filter.estimate);
        let estimate = cost::fold(
            fold.kind,
            (&range.ty, &range.estimate),
            filter,
            &body_estimate,
        );
        (self.folded(at, fold, &range.ty, body.ty), estimate)
    }

    fn condition(&mut self, node: &'a Node) -> Checked {
        let checked = self.node(node);
        if !self.bindings.assign(&checked.ty, &Type::Bool) {
            self.mismatch(node.at, &Type::Bool, &checked.ty);
        }
        checked
    }

    /// The variables of a macro: the item alone, or index and item, or key and value.
    fn iterated(
        &mut self,
        node: &Node,
        range: &Checked,
        two: bool,
    ) -> ((Type, Estimate), (Type, Estimate)) {
        let element = range.estimate.element();
        let plain = || Estimate::default();
        match &range.ty {
            Type::List(item) => {
                let item = ((**item).clone(), element);
                if two {
                    ((Type::Int, plain()), item)
                } else {
                    (item, (Type::Dyn, plain()))
                }
            }
            Type::Map(key, value) => {
                let key = ((**key).clone(), range.estimate.key());
                (key, ((**value).clone(), element))
            }
            Type::Dyn | Type::Error | Type::Variable(_) => {
                ((Type::Dyn, plain()), (Type::Dyn, plain()))
            }
            other => {
                let shown = self.bindings.settle(other);
                let message = format!(
                    "expression of type '{shown}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.fail(node.at, message);
                ((Type::Error, plain()), (Type::Error, plain()))
            }
        }
    }

    fn folded(&mut self, at: usize, fold: &Fold, range: &Type, body: Type) -> Type {
        match fold.kind {
            FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne => Type::Bool,
            FoldKind::Filter => match range {
                Type::Map(key, _) => Type::list((**key).clone()),
                Type::List(_) => range.clone(),
                _ => Type::list(Type::Dyn),
            },
            FoldKind::SortBy => match range {
                Type::List(_) => range.clone(),
                _ => Type::list(Type::Dyn),
            },
            FoldKind::Map => Type::list(body),
            FoldKind::TransformMap => match range {
                Type::Map(key, _) => Type::map((**key).clone(), body),
                Type::List(_) => Type::map(Type::Int, body),
                _ => Type::map(Type::Dyn, body),
            },
            FoldKind::TransformMapEntry => match self.bindings.resolve(&body) {
                map @ Type::Map(..) => map,
                other if other.is_open() => Type::map(Type::Dyn, Type::Dyn),
                other => self.mismatch(at, &Type::map(Type::Dyn, Type::Dyn), &other),
            },
            FoldKind::OptionalMap | FoldKind::OptionalFlatMap => {
                unreachable!("optionals are not ranges")
            }
        }
    }

    fn optional_fold(&mut self, at: usize, fold: &'a Fold, range: Checked) -> (Type, Estimate) {
        let inner = match &range.ty {
            Type::Optional(inner) => (**inner).clone(),
            ty if ty.is_open() => Type::Dyn,
            other => {
                let types = [other.clone()];
                self.no_overload(at, "hasValue", &types, true)
            }
        };
        let value = Estimate {
            cost: cost::SELECT,
            ..range.estimate.clone()
        };
        self.scope.push(local(&fold.variable, (inner, value)));
        let body = self.node(&fold.body);
        self.scope.pop();
        let estimate = cost::fold(
            fold.kind,
            (&range.ty, &range.estimate),
            None,
            &body.estimate,
        );
        let ty = match (fold.kind, body.ty) {
            (FoldKind::OptionalFlatMap, ty @ (Type::Optional(_) | Type::Dyn | Type::Error)) => ty,
            (FoldKind::OptionalFlatMap, other) => {
                self.mismatch(fold.body.at, &Type::optional(Type::Dyn), &other)
            }
            (_, other) => Type::optional(other),
        };
        (ty, estimate)
    }
}

fn local<'a>(name: &'a str, (ty, estimate): (Type, Estimate)) -> Local<'a> {
    let estimate = Estimate {
        cost: cost::SELECT,
        ..estimate
    };
    Local { name, ty, estimate }
}
