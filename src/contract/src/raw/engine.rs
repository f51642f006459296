//! The exact engine grammar of `exact_raw_rows` (contract.md 2.5).

use crate::canon::{Json, strict_digest};
use crate::code;
use crate::error::Refusal;
use crate::port::source::ReplicaScope;

const ENGINES: [(&str, ReplicaScope); 2] = [
    ("ReplacingMergeTree", ReplicaScope::SingleServer),
    ("ReplicatedReplacingMergeTree", ReplicaScope::ConnectedReplica),
];

const CLAUSES: [&str; 6] = ["PARTITION BY", "PRIMARY KEY", "ORDER BY", "SAMPLE BY", "TTL", "SETTINGS"];

/// Admits `system.tables.engine` with its `engine_full` and returns the engine signature
/// `ENGINE:sha256:` + SHA-256 of the whole `engine_full` as a JSON string.
///
/// # Errors
/// `mssql_native.replacing_raw_snapshot_required` for another engine or arguments outside the grammar,
/// `mssql_native.replica_scope_unproven` when the engine does not fit the declared scope.
pub fn signature(engine: &str, engine_full: &str, scope: ReplicaScope) -> Result<String, Refusal> {
    let Some((name, wanted)) = ENGINES.iter().find(|(name, _)| *name == engine) else {
        return Err(not_replacing());
    };
    if *wanted != scope {
        return Err(Refusal::new(
            code::REPLICA_SCOPE_UNPROVEN,
            "ReplacingMergeTree takes replica_scope single_server and ReplicatedReplacingMergeTree takes \
             connected_replica; correct the manifest or name the right table.",
        ));
    }
    let arguments = parse(name, engine_full).ok_or_else(not_replacing)?;
    let replicated = *wanted == ReplicaScope::ConnectedReplica;
    let engine_arguments = match arguments.as_slice() {
        [Argument::Literal, Argument::Literal, rest @ ..] if replicated => rest,
        all => all,
    };
    if engine_arguments.len() > 2 || engine_arguments.contains(&Argument::Literal) {
        return Err(not_replacing());
    }
    Ok(format!("{engine}:sha256:{}", engine_full_digest(engine_full)))
}

/// SHA-256 of the strict canonical JSON string of `engine_full`.
pub fn engine_full_digest(engine_full: &str) -> crate::digest::Digest {
    strict_digest(&Json::from(engine_full))
}

fn not_replacing() -> Refusal {
    Refusal::new(
        code::REPLACING_RAW_SNAPSHOT_REQUIRED,
        "exact_raw_rows reads a ReplacingMergeTree or ReplicatedReplacingMergeTree with plain column arguments in an \
         Atomic database; name such a table or remove source_snapshot.",
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Argument {
    /// A quoted text: Keeper path or replica name.
    Literal,
    /// A plain or backquoted column name.
    Identifier,
}

/// The arguments of `engine_full`, or `None` if the text is outside the grammar.
fn parse(engine: &str, engine_full: &str) -> Option<Vec<Argument>> {
    let mut scan = Scan { rest: engine_full.strip_prefix(engine)? };
    let mut arguments = Vec::new();
    if scan.take("(") {
        scan.skip_space();
        if !scan.take(")") {
            loop {
                arguments.push(scan.argument()?);
                scan.skip_space();
                if scan.take(")") {
                    break;
                }
                if !scan.take(",") {
                    return None;
                }
                scan.skip_space();
            }
        }
    }
    scan.tail().then_some(arguments)
}

struct Scan<'a> {
    rest: &'a str,
}

impl Scan<'_> {
    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c));
    }

    fn argument(&mut self) -> Option<Argument> {
        if self.take("'") {
            return self.literal().then_some(Argument::Literal);
        }
        let quoted = self.take("`");
        let len = self.rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (name, rest) = self.rest.split_at(len);
        self.rest = rest;
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || (quoted && !self.take("`")) {
            return None;
        }
        Some(Argument::Identifier)
    }

    /// Skips to the end of a text whose opening quote is behind: a backslash takes the next character of the same
    /// line with it, a doubled quote stands for itself.
    fn literal(&mut self) -> bool {
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some((_, '\n')) | None => return false,
                    Some(_) => {}
                },
                '\'' if self.rest[at + 1..].starts_with('\'') => {
                    characters.next();
                }
                '\'' => {
                    self.rest = &self.rest[at + 1..];
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    /// Whether the rest is empty, or one space, one clause keyword, one space and the remainder of the line.
    fn tail(&self) -> bool {
        if self.rest.is_empty() {
            return true;
        }
        let Some(clause) = self.rest.strip_prefix(' ') else {
            return false;
        };
        let keyword = CLAUSES.iter().any(|keyword| clause.strip_prefix(keyword).is_some_and(|t| t.starts_with(' ')));
        keyword && !clause.contains('\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(engine_full: &str, admitted: bool) {
        let engine = engine_full.split(['(', ' ', '\n']).next().unwrap_or_default();
        let scope =
            if engine.starts_with("Replicated") { ReplicaScope::ConnectedReplica } else { ReplicaScope::SingleServer };
        assert_eq!(signature(engine, engine_full, scope).is_ok(), admitted, "{engine_full:?}");
    }

    #[test]
    fn arguments_are_identifiers_and_for_replicas_two_leading_literals() {
        check("ReplacingMergeTree( ver , `del` )", true);
        check("ReplacingMergeTree('a')", false);
        check("ReplacingMergeTree(a,)", false);
        check("ReplacingMergeTree(`a)", false);
        check("ReplacingMergeTree(1a)", false);
        check("ReplacingMergeTree(", false);
        check("ReplicatedReplacingMergeTree('/p')", false);
        check("ReplicatedReplacingMergeTree('/p', ver)", false);
        check("ReplicatedReplacingMergeTree(ver, 'r')", false);
        check("ReplicatedReplacingMergeTree('/p', 'r', 'x')", false);
        check("ReplicatedReplacingMergeTree('/p\\', 'r')", false);
        check("ReplicatedReplacingMergeTree('/p', 'r'')", false);
        check("ReplicatedReplacingMergeTree(ver, del)", true);
    }

    #[test]
    fn the_tail_is_one_clause_on_one_line() {
        check("ReplacingMergeTree TTL x", true);
        check("ReplacingMergeTree TTL", false);
        check("ReplacingMergeTree ORDER BY a\nSETTINGS b", false);
        check("ReplacingMergeTree() ORDER  BY a", false);
        check("ReplacingMergeTree()ORDER BY a", false);
    }
}
