//! Typed evaluation against the evaluation by cells: random expressions over random rows.

use proptest::prelude::*;

use super::super::bind::Binder;
use super::super::engine::Discard;
use super::super::error::Result;
use super::super::parse::parse_batch;
use super::super::plan::{Plan, Row, Step};
use super::super::state::Cx;
use super::super::stmt::Kind;
use super::super::{Engine, EngineOptions, LoginRequest};
use super::settle;

/// Text of an integer expression over the columns of [`row`].
fn integer(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["bt", "ti", "si", "i", "bi", "NULL"]).prop_map(String::from),
        (-300i32..300).prop_map(|n| n.to_string()),
        Just("16777216".to_string()),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let ty =
        prop::sample::select(vec!["bit", "tinyint", "smallint", "int", "bigint", "decimal(38,0)", "decimal(19,0)"]);
    prop_oneof![
        1 => leaf,
        2 => (ty.clone(), integer(depth - 1)).prop_map(|(ty, x)| format!("CONVERT({ty}, {x})")),
        2 => (ty, bytes(depth - 1)).prop_map(|(ty, x)| format!("CONVERT({ty}, {x})")),
        2 => (integer(depth - 1), prop::sample::select(vec!["+", "-", "*", "/", "%", "&"]), integer(depth - 1))
            .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
        1 => bytes(depth - 1).prop_map(|x| format!("CONVERT(bigint, DATALENGTH({x}))")),
    ]
    .boxed()
}

/// Text of a binary expression over the columns of [`row`].
fn bytes(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["b4", "vb", "vbm"]).prop_map(String::from),
        prop::sample::select(vec!["0x", "0x08", "0xFF01", "0x0102030405060708090A0B0C0D0E0F101112131415161718"])
            .prop_map(String::from),
    ];
    if depth == 0 {
        return leaf.boxed();
    }
    let ty = prop::sample::select(vec![
        "binary(1)",
        "binary(8)",
        "binary(30)",
        "varbinary(3)",
        "varbinary(8)",
        "varbinary(max)",
        "varbinary(8000)",
    ]);
    prop_oneof![
        1 => leaf,
        2 => (ty.clone(), integer(depth - 1)).prop_map(|(ty, x)| format!("CONVERT({ty}, {x})")),
        2 => (ty.clone(), bytes(depth - 1)).prop_map(|(ty, x)| format!("CONVERT({ty}, {x})")),
        1 => (ty, prop::sample::select(vec!["f", "nv", "nvm", "dt"])).prop_map(|(ty, x)| format!("CONVERT({ty}, {x})")),
        2 => (bytes(depth - 1), -1i32..10, 0i32..9).prop_map(|(x, at, n)| format!("SUBSTRING({x}, {at}, {n})")),
        2 => (bytes(depth - 1), prop::collection::vec(-1i32..10, 1..4)).prop_map(|(x, at)| {
            let pieces: Vec<String> = at.iter().map(|at| format!("SUBSTRING({x}, {at}, 1)")).collect();
            format!("({})", pieces.join(" + "))
        }),
        3 => (bytes(depth - 1), bytes(depth - 1)).prop_map(|(a, b)| format!("({a} + {b})")),
        1 => (integer(0), bytes(depth - 1), bytes(depth - 1))
            .prop_map(|(c, a, b)| format!("CASE WHEN {c} IS NULL THEN {a} ELSE {b} END")),
        1 => bytes(depth - 1).prop_map(|x| format!("HASHBYTES('SHA2_256', {x})")),
    ]
    .boxed()
}

fn maybe(value: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    prop_oneof![1 => Just("NULL".to_string()), 4 => value]
}

fn hex(length: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), 0..length)
        .prop_map(|bytes| format!("0x{}", bytes.iter().map(|b| format!("{b:02X}")).collect::<String>()))
}

/// One row of VALUES, with NULLs.
fn row() -> impl Strategy<Value = String> {
    (
        maybe(any::<bool>().prop_map(|n| u8::from(n).to_string())),
        maybe(any::<u8>().prop_map(|n| n.to_string())),
        maybe(any::<i16>().prop_map(|n| n.to_string())),
        maybe(any::<i32>().prop_map(|n| n.to_string())),
        maybe(prop_oneof![any::<i64>(), -9i64..9].prop_map(|n| n.to_string())),
        maybe((-1000i32..1000).prop_map(|n| format!("{n}.25E0"))),
        (maybe(hex(6)), maybe(hex(20)), maybe(hex(60))),
        (maybe("[a-z]{0,9}".prop_map(|t| format!("N'{t}'"))), maybe("[ -&(-~]{0,30}".prop_map(|t| format!("N'{t}'")))),
        maybe((0u32..28).prop_map(|n| format!("'2020-02-{:02} 01:02:03.4567'", n + 1))),
    )
        .prop_map(|(bt, ti, si, i, bi, f, (b4, vb, vbm), (nv, nvm), dt)| {
            format!(
                "(CONVERT(bit, {bt}), CONVERT(tinyint, {ti}), CONVERT(smallint, {si}), CONVERT(int, {i}), \
                 CONVERT(bigint, {bi}), CONVERT(float, {f}), CONVERT(binary(4), {b4}), CONVERT(varbinary(20), {vb}), \
                 CONVERT(varbinary(max), {vbm}), CONVERT(nvarchar(20), {nv}), CONVERT(nvarchar(max), {nvm}), \
                 CONVERT(datetime2(7), {dt}))"
            )
        })
}

fn outcome(cx: &mut Cx<'_>, plan: &Plan) -> std::result::Result<Vec<Row>, (i32, String)> {
    let mut rows: Vec<Row> = Vec::new();
    let result: Result<Step> = plan.run(cx, &mut |_, row| {
        rows.push(row.clone());
        Ok(Step::More)
    });
    result.map(|_| rows).map_err(|e| (e.number, e.message))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn typed_evaluation_equals_evaluation_by_cells(
        number in integer(3), binary in bytes(4), rows in prop::collection::vec(row(), 1..4)
    ) {
        let options = EngineOptions { users: vec![("t".into(), "t".into())], ..EngineOptions::default() };
        let engine = Engine::in_memory(options).unwrap();
        let request = LoginRequest { user: "t".into(), password: "t".into(), ..LoginRequest::default() };
        let mut session = engine.login(&request).unwrap();
        let mut nobody = Discard;
        let mut cx = session.context(&mut nobody);
        for (list, rows) in [(number.clone(), rows.clone()), (binary, rows.clone()), (format!("SUM(CONVERT(decimal(38,0), {number}))"), rows)] {
            let sql = format!(
                "SELECT {list} FROM (VALUES {}) AS v(bt, ti, si, i, bi, f, b4, vb, vbm, nv, nvm, dt)",
                rows.join(", ")
            );
            let statements = parse_batch(&sql, true).unwrap();
            let Kind::Query(query) = &statements[0].kind else { panic!("a query") };
            // What the binder refuses has no value to compare.
            let Ok(mut plan) = Binder::new(&mut cx).bind_query(query, None) else { continue };
            let by_cells = outcome(&mut cx, &plan);
            settle(&mut plan);
            prop_assert_eq!(outcome(&mut cx, &plan), by_cells, "{}", sql);
        }
    }
}
