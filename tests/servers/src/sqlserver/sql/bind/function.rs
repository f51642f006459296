//! Function calls.

use std::rc::Rc;

use super::super::ast::{Expr, FuncCall};
use super::super::error::{self, Result};
use super::super::plan::{FuncX, Typed, UserFuncX, X};
use super::super::sysfn;
use super::Binder;
use super::aggregate::aggregate_of;
use super::expr::case_of;
use super::window::window_of;
use crate::sqlserver::value::{Argument, Coercibility, Collation, Value, resolve_function};

/// Functions whose first argument is a date part.
const DATE_PART_FUNCTIONS: &[&str] =
    &["dateadd", "datediff", "datediff_big", "datepart", "datename", "datetrunc", "date_bucket"];

impl Binder<'_, '_> {
    pub(super) fn bind_call(&mut self, call: &FuncCall, scope: usize) -> Result<Typed> {
        if call.name.parts.len() > 1 {
            return self.bind_user_function(call, scope);
        }
        let name = call.name.base().to_ascii_lowercase();
        if let Some(over) = &call.over {
            return self.bind_window(call, over, scope);
        }
        if let Some(kind) = aggregate_of(&name) {
            return self.bind_aggregate(call, kind, scope);
        }
        if window_of(&name).is_some() {
            let message = format!("The function '{}' must have an OVER clause.", call.name.base());
            return Err(error::new(10753, 15, 1, &message));
        }
        match name.as_str() {
            "iif" => return self.bind_iif(call, scope),
            "coalesce" => return self.bind_coalesce(call, scope),
            "update" => return sysfn::bind_update(self, call),
            _ => {}
        }
        if let Some(function) = sysfn::find(&name) {
            return self.bind_system_function(call, function, scope);
        }
        self.bind_builtin(&name, call, scope)
    }

    fn bind_iif(&mut self, call: &FuncCall, scope: usize) -> Result<Typed> {
        let [condition, yes, no] = call.args.as_slice() else {
            return Err(error::new(174, 15, 1, "The iif function requires 3 argument(s)."));
        };
        let condition = self.bind_condition(condition, scope)?;
        let results = vec![self.bind_scalar(yes, scope)?, self.bind_scalar(no, scope)?];
        if results.iter().all(|r| matches!(&r.x, X::Const(Value::Null))) {
            return Err(error::plain(
                8133,
                "At least one of the result expressions in a CASE specification must be an expression other than the NULL constant.",
            ));
        }
        case_of(vec![condition], results)
    }

    /// COALESCE evaluates no further than the first value.
    fn bind_coalesce(&mut self, call: &FuncCall, scope: usize) -> Result<Typed> {
        if call.args.len() < 2 {
            return Err(error::new(102, 15, 1, "Incorrect syntax near ')'."));
        }
        let mut results = Vec::new();
        for arg in &call.args {
            results.push(self.bind_scalar(arg, scope)?);
        }
        if results.iter().all(|r| matches!(&r.x, X::Const(Value::Null))) {
            return Err(error::plain(
                4127,
                "At least one of the arguments to COALESCE must be an expression that is not the NULL constant.",
            ));
        }
        let nullable = results.iter().all(|r| r.nullable);
        let conditions = results[..results.len() - 1].iter().map(|r| X::IsNull(Box::new(r.x.clone()), true)).collect();
        let typed = case_of(conditions, results)?;
        Ok(Typed { nullable, ..typed })
    }

    fn bind_system_function(&mut self, call: &FuncCall, function: sysfn::SysFn, scope: usize) -> Result<Typed> {
        let count = call.args.len();
        if count < function.least || count > function.most || call.star {
            let name = function.name;
            let message = if function.least == function.most {
                format!("The {name} function requires {} argument(s).", function.least)
            } else {
                format!("The {name} function requires {} to {} arguments.", function.least, function.most)
            };
            let number = if function.least == function.most { 174 } else { 189 };
            return Err(error::new(number, 15, 1, &message));
        }
        let mut args = Vec::with_capacity(count);
        for arg in &call.args {
            args.push(self.bind_scalar(arg, scope)?.x);
        }
        Ok(Typed::new(X::Sys(function, args), function.ty, true))
    }

    fn bind_builtin(&mut self, name: &str, call: &FuncCall, scope: usize) -> Result<Typed> {
        let mut words = Vec::new();
        let mut bound = Vec::new();
        for (at, arg) in call.args.iter().enumerate() {
            if at == 0 && DATE_PART_FUNCTIONS.contains(&name) {
                match arg {
                    Expr::Column(word) if word.parts.len() == 1 => {
                        words.push(word.base().to_owned());
                        continue;
                    }
                    _ => {
                        let message = format!("Invalid parameter 1 specified for {name}.");
                        return Err(error::new(1023, 15, 1, &message));
                    }
                }
            }
            bound.push(self.bind_scalar(arg, scope)?);
        }
        self.builtin(name, &words, bound)
    }

    /// A built-in over bound arguments.
    pub(crate) fn builtin(&mut self, name: &str, words: &[String], mut bound: Vec<Typed>) -> Result<Typed> {
        // Character arguments share one collation; the first that has precedence decides.
        let mut collation: Option<(Collation, Coercibility)> = None;
        for typed in &bound {
            if let Some(c) = typed.ty.collation() {
                collation = Some(match collation {
                    None => (c, typed.coercibility),
                    Some(so_far) => Collation::resolve(so_far, (c, typed.coercibility), name)?,
                });
            }
        }
        if let Some((c, _)) = collation {
            for typed in &mut bound {
                typed.ty = typed.ty.with_collation(c);
            }
        }
        let keywords = words.iter().map(|w| Argument::Keyword(w));
        let typed = bound.iter().map(|t| Argument::Typed { ty: t.ty, nullable: t.nullable });
        let arguments: Vec<Argument<'_>> = keywords.chain(typed).collect();
        let function = resolve_function(name, &arguments)?;
        let (ty, nullable) = (function.result, function.nullable);
        let coercibility = collation.map_or(Coercibility::CoercibleDefault, |(_, c)| c);
        let function = Rc::new(FuncX { function, keywords: words.join(" ") });
        let args = bound.into_iter().map(|t| t.x).collect();
        Ok(Typed { x: X::Func(function, args), ty, nullable, coercibility, boolean: false })
    }

    fn bind_user_function(&mut self, call: &FuncCall, scope: usize) -> Result<Typed> {
        let found = super::super::function::find_scalar(self, &call.name)?;
        if call.args.len() > found.params.len() {
            let message = format!("Procedure or function {} has too many arguments specified.", call.name.display());
            return Err(error::new(8144, 16, 3, &message));
        }
        if call.args.len() < found.params.len() {
            let message = format!(
                "An insufficient number of arguments were supplied for the procedure or function {}.",
                call.name.display()
            );
            return Err(error::new(313, 16, 3, &message));
        }
        let mut args = Vec::new();
        let mut arg_types = Vec::new();
        for (arg, param) in call.args.iter().zip(&found.params) {
            arg_types.push(*param);
            if matches!(arg, Expr::Default) {
                args.push(None);
                continue;
            }
            let typed = self.bind_scalar(arg, scope)?;
            args.push(Some(super::expr::convert(typed, *param)?));
        }
        let x = X::UserFunc(Box::new(UserFuncX { object: found.object, args, arg_types }));
        Ok(Typed { coercibility: Coercibility::Implicit, ..Typed::new(x, found.returns, true) })
    }
}
