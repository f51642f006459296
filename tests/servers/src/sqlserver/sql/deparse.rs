//! Expressions as the catalog shows them: names in brackets, numbers in parentheses.

use super::ast::{BinOp, Expr, FuncCall, Literal, TypeArg, TypeName, UnOp};

/// `(expression)`, the form of sys.check_constraints, sys.default_constraints and sys.computed_columns.
pub(crate) fn definition(expr: &Expr, text: &str) -> String {
    match show(expr) {
        Some(shown) => format!("({shown})"),
        // A shape without a rule here keeps its own text.
        None => format!("({text})"),
    }
}

fn operator(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::Mod => "%",
        BinOp::BitAnd => "&",
        BinOp::BitOr => "|",
        BinOp::BitXor => "^",
        BinOp::Eq => "=",
        BinOp::Ne => "<>",
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Gt => ">",
        BinOp::Ge => ">=",
        BinOp::And => " AND ",
        BinOp::Or => " OR ",
    }
}

fn quoted(text: &str, national: bool) -> String {
    format!("{}'{}'", if national { "N" } else { "" }, text.replace('\'', "''"))
}

fn type_name(ty: &TypeName) -> String {
    let args: Vec<String> = ty
        .args
        .iter()
        .map(|a| match a {
            TypeArg::Number(n) => n.to_string(),
            TypeArg::Max => "max".into(),
        })
        .collect();
    if args.is_empty() { format!("[{}]", ty.name) } else { format!("[{}]({})", ty.name, args.join(",")) }
}

/// An operand of an arithmetic operator or comparison.
fn operand(expr: &Expr, strict: bool) -> Option<String> {
    let shown = show(expr)?;
    Some(match expr {
        Expr::Binary(op, ..) if strict || op.is_comparison() => format!("({shown})"),
        _ => shown,
    })
}

fn show(expr: &Expr) -> Option<String> {
    Some(match expr {
        Expr::Literal(Literal::Null) => "NULL".into(),
        Expr::Literal(Literal::Number(n)) | Expr::Literal(Literal::Float(n)) => format!("({n})"),
        Expr::Literal(Literal::Money(n)) => format!("(${n})"),
        Expr::Literal(Literal::Str { text, national }) => quoted(text, *national),
        Expr::Literal(Literal::Binary(bytes)) => {
            let digits: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
            format!("0x{digits}")
        }
        Expr::Column(name) => {
            let parts: Vec<String> = name.parts.iter().map(|p| format!("[{}]", p.replace(']', "]]"))).collect();
            parts.join(".")
        }
        Expr::Unary(UnOp::Not, inner) => format!("NOT {}", operand(inner, true)?),
        Expr::Unary(op, inner) => {
            let sign = match op {
                UnOp::Minus => "-",
                UnOp::Plus => "+",
                _ => "~",
            };
            format!("{sign}{}", operand(inner, true)?)
        }
        Expr::Binary(op @ (BinOp::And | BinOp::Or), a, b) => {
            let side = |e: &Expr| match e {
                Expr::Binary(BinOp::Or, ..) if *op == BinOp::And => show(e).map(|s| format!("({s})")),
                _ => show(e),
            };
            format!("{}{}{}", side(a)?, operator(*op), side(b)?)
        }
        Expr::Binary(op, a, b) => format!("{}{}{}", operand(a, false)?, operator(*op), operand(b, true)?),
        Expr::IsNull { expr, negated } => {
            format!("{} IS {}NULL", operand(expr, true)?, if *negated { "NOT " } else { "" })
        }
        // SQL Server stores BETWEEN and IN by what they mean.
        Expr::Between { expr, low, high, negated: false } => {
            let x = operand(expr, true)?;
            format!("{x}>={} AND {x}<={}", operand(low, true)?, operand(high, true)?)
        }
        Expr::InList { expr, list, negated: false } => {
            let x = operand(expr, true)?;
            let mut terms = Vec::new();
            for item in list.iter().rev() {
                terms.push(format!("{x}={}", operand(item, true)?));
            }
            terms.join(" OR ")
        }
        Expr::Like { expr, pattern, escape: None, negated } => {
            format!("{}{} like {}", operand(expr, true)?, if *negated { " NOT" } else { "" }, operand(pattern, true)?)
        }
        Expr::Cast { expr, ty, attempt: false } => format!("CONVERT({},{})", type_name(ty), show(expr)?),
        Expr::Convert { expr, ty, style, attempt: false } => match style {
            Some(style) => format!("CONVERT({},{},{})", type_name(ty), show(expr)?, show(style)?),
            None => format!("CONVERT({},{})", type_name(ty), show(expr)?),
        },
        Expr::Collate(inner, name) => format!("{} COLLATE {name}", show(inner)?),
        Expr::Func(call) => function(call)?,
        _ => return None,
    })
}

fn function(call: &FuncCall) -> Option<String> {
    if call.over.is_some() || call.star || call.distinct || !call.within_group.is_empty() {
        return None;
    }
    let name = if call.name.parts.len() == 1 {
        call.name.base().to_lowercase()
    } else {
        call.name.parts.iter().map(|p| format!("[{p}]")).collect::<Vec<_>>().join(".")
    };
    // CURRENT_TIMESTAMP is stored as the function that it stands for.
    if name == "current_timestamp" {
        return Some("getdate()".into());
    }
    let niladic = ["user", "session_user", "current_user", "system_user"];
    if call.args.is_empty() && niladic.contains(&name.as_str()) {
        return Some(if name == "system_user" { "suser_sname()".into() } else { "user_name()".into() });
    }
    let date_part = name.starts_with("date") && call.args.len() > 1;
    let mut args = Vec::new();
    for (at, arg) in call.args.iter().enumerate() {
        match arg {
            Expr::Column(word) if at == 0 && date_part => args.push(word.base().to_lowercase()),
            other => args.push(show(other)?),
        }
    }
    Some(format!("{name}({})", args.join(",")))
}
