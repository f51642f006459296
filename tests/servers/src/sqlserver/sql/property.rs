//! Property functions: SERVERPROPERTY, OBJECTPROPERTY, HAS_PERMS_BY_NAME and their kin.

use std::sync::Arc;

use super::bind::same_name;
use super::error::Result;
use super::permission::{self, Target};
use super::state::Cx;
use super::sysfn::{int, is_view, text};
use super::{lookup, parse, principal};
use crate::sqlserver::store::catalog::{Object, ObjectBody, ObjectId};
use crate::sqlserver::value::{Collation, SqlType, Value};

/// `SERVERPROPERTY('ProductVersion')`.
pub(crate) const PRODUCT_VERSION: &str = "16.0.1000.6";
/// `@@VERSION`.
pub(crate) const VERSION_TEXT: &str = "Microsoft SQL Server 2022 (RTM) - 16.0.1000.6 (X64) \n\ttestkit (not a Microsoft product)\n\tDeveloper Edition (64-bit)";

fn variant(ty: SqlType, value: Value) -> Value {
    Value::Variant(Arc::new((ty, value)))
}

fn name(text: &str) -> Value {
    variant(SqlType::SYSNAME, Value::text(text))
}

fn number(n: i32) -> Value {
    variant(SqlType::Int, Value::Int(n))
}

pub(crate) fn server(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let Some(property) = text(args, 0) else { return Ok(Value::Null) };
    let server = cx.st.engine.options.server_name.clone();
    Ok(match property.to_ascii_lowercase().as_str() {
        "productversion" => name(PRODUCT_VERSION),
        "productlevel" => name("RTM"),
        "productmajorversion" => name("16"),
        "productminorversion" => name("0"),
        "productbuild" => name("1000"),
        "edition" => name("Developer Edition (64-bit)"),
        "editionid" => variant(SqlType::BigInt, Value::BigInt(-2_117_995_310)),
        "engineedition" => number(3),
        "collation" => name(&Collation::DEFAULT.name()),
        "collationid" => number(872_468_488),
        "lcid" => number(1033),
        "sqlcharset" => variant(SqlType::TinyInt, Value::TinyInt(1)),
        "sqlcharsetname" => name("iso_1"),
        "sqlsortorder" => variant(SqlType::TinyInt, Value::TinyInt(52)),
        "sqlsortordername" => name("nocase_iso"),
        "servername" | "machinename" | "computernamephysicalnetbios" => name(&server),
        "isclustered"
        | "ishadrenabled"
        | "isintegratedsecurityonly"
        | "issingleuser"
        | "isadvancedanalyticsinstalled"
        | "isfulltextinstalled"
        | "ispolybaseinstalled"
        | "isxtpsupported" => number(0),
        "processid" => number(i32::try_from(std::process::id()).unwrap_or(0)),
        "licensetype" => name("DISABLED"),
        "resourceversion" => name("16.00.1000"),
        "buildclrversion" => name("v4.0.30319"),
        _ => Value::Null,
    })
}

pub(crate) fn connection(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let Some(property) = text(args, 0) else { return Ok(Value::Null) };
    Ok(match property.to_ascii_lowercase().as_str() {
        "net_transport" | "physical_net_transport" => name("TCP"),
        "protocol_type" => name("TSQL"),
        "auth_scheme" => name("SQL"),
        "client_net_address" => {
            let address = cx.st.login.client_address.clone();
            name(&address)
        }
        _ => Value::Null,
    })
}

pub(crate) fn database(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    use crate::sqlserver::store::catalog::Scope;
    let (Some(database), Some(property)) = (text(args, 0), text(args, 1)) else { return Ok(Value::Null) };
    let txn = cx.st.txn();
    let Some(found) = txn.find_database(&database) else { return Ok(Value::Null) };
    Ok(match property.to_ascii_lowercase().as_str() {
        "collation" => name(&found.collation),
        "status" => name("ONLINE"),
        "updateability" => name("READ_WRITE"),
        "useraccess" => name("MULTI_USER"),
        "recovery" => {
            name(&txn.setting(Scope::Database(found.id), "recovery_model").unwrap_or_else(|| "SIMPLE".into()))
        }
        "version" => number(957),
        "comparisonstyle" => number(196_609),
        "lcid" => number(1033),
        "sqlsortorder" => number(52),
        "isansinullsenabled"
        | "isansinulldefault"
        | "isansipaddingenabled"
        | "isansiwarningsenabled"
        | "isarithmeticabortenabled"
        | "isautoclose"
        | "isautoshrink"
        | "isclone"
        | "isfulltextenabled"
        | "isinstandby"
        | "isnullconcat"
        | "isquotedidentifiersenabled"
        | "isparameterizationforced"
        | "istornpagedetectionenabled" => number(0),
        "isautocreatestatistics" | "isautoupdatestatistics" => number(1),
        _ => Value::Null,
    })
}

pub(crate) fn file(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(file), Some(property)) = (text(args, 0), text(args, 1)) else { return Ok(Value::Null) };
    let database = cx.st.database;
    let data = same_name(&file, &cx.st.database_name);
    let log = same_name(&file, &format!("{}_log", cx.st.database_name));
    if !data && !log {
        return Ok(Value::Null);
    }
    Ok(match property.to_ascii_lowercase().as_str() {
        "spaceused" if data => {
            let pages = super::catalog::used_pages(cx, database);
            Value::Int(i32::try_from(pages).unwrap_or(i32::MAX))
        }
        "spaceused" => Value::Int(i32::try_from(cx.st.engine.store.log_bytes() / 8192 + 1).unwrap_or(i32::MAX)),
        "islogfile" => Value::Int(i32::from(log)),
        "isprimaryfile" => Value::Int(i32::from(data)),
        "isreadonly" => Value::Int(0),
        _ => Value::Null,
    })
}

fn object_by_id(cx: &mut Cx<'_>, args: &[Value]) -> Option<Arc<Object>> {
    let id = i32::try_from(int(args, 0)?).ok()?;
    let txn = cx.st.txn();
    let object = txn.object(ObjectId(id))?;
    permission::sees(cx, &object).then_some(object)
}

pub(crate) fn column(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(object), Some(column), Some(property)) = (object_by_id(cx, args), text(args, 1), text(args, 2)) else {
        return Ok(Value::Null);
    };
    let Some(table) = object.table() else { return Ok(Value::Null) };
    let Some(at) = table.column_position(&column) else { return Ok(Value::Null) };
    let found = &table.columns[at];
    let flag = |b: bool| Value::Int(i32::from(b));
    Ok(match property.to_ascii_lowercase().as_str() {
        "allowsnull" => flag(found.nullable),
        "columnid" => Value::Int(found.id),
        "ordinal" => Value::Int(i32::try_from(at + 1).unwrap_or(0)),
        "iscomputed" => flag(found.computed.is_some()),
        "isidentity" => flag(found.identity.is_some()),
        "isrowguidcol" => flag(found.rowguidcol),
        "ishidden" | "issparse" | "iscolumnset" | "isfulltextindexed" | "isidnotforrepl" | "generatedalwaystype" => {
            flag(false)
        }
        "precision" => Value::Int(match found.ty {
            SqlType::Char(n, _) | SqlType::NChar(n, _) | SqlType::Binary(n) => i32::from(n),
            SqlType::VarChar(n, _) | SqlType::NVarChar(n, _) | SqlType::VarBinary(n) => {
                i32::try_from(n.limit()).unwrap_or(-1)
            }
            ref other => i32::from(other.precision()),
        }),
        "scale" => {
            if found.ty.is_number() || found.ty.is_temporal() {
                Value::Int(i32::from(found.ty.scale()))
            } else {
                Value::Null
            }
        }
        "charmaxlen" => match found.ty {
            SqlType::Char(n, _) | SqlType::NChar(n, _) => Value::Int(i32::from(n)),
            SqlType::VarChar(n, _) | SqlType::NVarChar(n, _) => Value::Int(i32::try_from(n.limit()).unwrap_or(-1)),
            _ => Value::Null,
        },
        "isindexable" => flag(!found.ty.is_large()),
        "usesansitrim" => flag(true),
        "isdeterministic" if found.computed.is_some() => flag(true),
        _ => Value::Null,
    })
}

pub(crate) fn object(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(object), Some(property)) = (object_by_id(cx, args), text(args, 1)) else { return Ok(Value::Null) };
    let table = object.table();
    let txn = cx.st.txn();
    let flag = |b: bool| Value::Int(i32::from(b));
    let triggers = |filter: fn(&crate::sqlserver::store::catalog::TriggerDef) -> bool| {
        txn.objects(object.database).iter().any(|o| match &o.body {
            ObjectBody::Trigger(t) => t.parent == object.id && filter(t),
            _ => false,
        })
    };
    Ok(match property.to_ascii_lowercase().as_str() {
        "istable" | "isusertable" => flag(table.is_some()),
        "isview" => flag(is_view(&object)),
        "isprocedure" => flag(matches!(object.body, ObjectBody::Procedure(_))),
        "istrigger" => flag(matches!(object.body, ObjectBody::Trigger(_))),
        "isscalarfunction" => flag(matches!(object.body, ObjectBody::ScalarFunction(_))),
        "istablefunction" => flag(matches!(object.body, ObjectBody::TableFunction(_) | ObjectBody::InlineFunction(_))),
        "isinlinefunction" => flag(matches!(object.body, ObjectBody::InlineFunction(_))),
        "ismsshipped" | "issystemtable" => flag(false),
        "isconstraint" => flag(false),
        "ownerid" => Value::Int(object.owner.map_or(principal::DBO.0, |o| o.0)),
        "schemaid" => Value::Int(object.schema.0),
        "isexecuted" | "isquotedidenton" | "isansinullson" | "execisquotedidenton" | "execisansinullson" => flag(true),
        "tablehasidentity" => flag(table.is_some_and(|t| t.columns.iter().any(|c| c.identity.is_some()))),
        "tablehasprimarykey" => {
            flag(table.is_some_and(|t| t.indexes.iter().any(|i| i.constraint.as_ref().is_some_and(|c| c.primary))))
        }
        "tablehasclustindex" => flag(table.is_some_and(|t| t.clustered_index().is_some())),
        "tablehasindex" => flag(table.is_some_and(|t| !t.indexes.is_empty())),
        "tablehasforeignkey" => flag(table.is_some_and(|t| !t.foreign_keys.is_empty())),
        "tablehascheckcnst" => flag(table.is_some_and(|t| !t.checks.is_empty())),
        "tablehasdefaultcnst" => flag(table.is_some_and(|t| t.columns.iter().any(|c| c.default.is_some()))),
        "tablehasuniquecnst" => {
            flag(table.is_some_and(|t| t.indexes.iter().any(|i| i.constraint.as_ref().is_some_and(|c| !c.primary))))
        }
        "tablehastimestamp" => flag(table.is_some_and(|t| t.columns.iter().any(|c| c.ty == SqlType::RowVersion))),
        "tablehastextimage" => flag(table.is_some_and(|t| t.columns.iter().any(|c| c.ty.is_legacy_large()))),
        "tablehasinserttrigger" => flag(triggers(|t| t.on_insert)),
        "tablehasupdatetrigger" => flag(triggers(|t| t.on_update)),
        "tablehasdeletetrigger" => flag(triggers(|t| t.on_delete)),
        "tabletemporaltype" | "tableisfake" | "tableismemoryoptimized" | "tablehasactivefulltextindex" => flag(false),
        "execisinserttrigger"
        | "execisupdatetrigger"
        | "execisdeletetrigger"
        | "execistriggerdisabled"
        | "execisinsteadoftrigger"
        | "execisaftertrigger" => match &object.body {
            ObjectBody::Trigger(t) => flag(match property.to_ascii_lowercase().as_str() {
                "execisinserttrigger" => t.on_insert,
                "execisupdatetrigger" => t.on_update,
                "execisdeletetrigger" => t.on_delete,
                "execistriggerdisabled" => t.disabled,
                "execisinsteadoftrigger" => t.instead_of,
                _ => !t.instead_of,
            }),
            _ => Value::Null,
        },
        _ => Value::Null,
    })
}

pub(crate) fn object_ex(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let property = text(args, 1).unwrap_or_default().to_ascii_lowercase();
    if let Some(found) = object_by_id(cx, args) {
        if property == "basetype" {
            return Ok(variant(
                SqlType::Char(2, Collation::DEFAULT),
                Value::text(&format!("{:2}", found.body.type_code())),
            ));
        }
        if property == "cardinality" {
            let txn = cx.st.txn();
            let rows = txn.allocation(found.id).map_or(0, |a| a.rows);
            return Ok(variant(SqlType::BigInt, Value::BigInt(i64::try_from(rows).unwrap_or(i64::MAX))));
        }
    }
    Ok(match object(cx, args)? {
        Value::Null => Value::Null,
        value => variant(SqlType::Int, value),
    })
}

pub(crate) fn index(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(object), Some(index), Some(property)) = (object_by_id(cx, args), text(args, 1), text(args, 2)) else {
        return Ok(Value::Null);
    };
    let Some(found) = object.table().and_then(|t| t.indexes.iter().find(|i| same_name(&i.name, &index))) else {
        return Ok(Value::Null);
    };
    let flag = |b: bool| Value::Int(i32::from(b));
    Ok(match property.to_ascii_lowercase().as_str() {
        "indexid" => Value::Int(found.id),
        "isunique" => flag(found.unique),
        "isclustered" => flag(found.id == 1),
        "isdisabled" => flag(found.disabled),
        "indexfillfactor" => Value::Int(i32::from(found.fill_factor)),
        "isstatistics" | "isautostatistics" | "ishypothetical" | "iscolumnstore" | "isfulltextkey" | "ispadindex" => {
            flag(false)
        }
        "isrowlockdisallowed" | "ispagelockdisallowed" => flag(false),
        _ => Value::Null,
    })
}

/// System types with their ids in sys.types.
pub(crate) const TYPES: &[(&str, u8, i32)] = &[
    ("image", 34, 34),
    ("text", 35, 35),
    ("uniqueidentifier", 36, 36),
    ("date", 40, 40),
    ("time", 41, 41),
    ("datetime2", 42, 42),
    ("datetimeoffset", 43, 43),
    ("tinyint", 48, 48),
    ("smallint", 52, 52),
    ("int", 56, 56),
    ("smalldatetime", 58, 58),
    ("real", 59, 59),
    ("money", 60, 60),
    ("datetime", 61, 61),
    ("float", 62, 62),
    ("sql_variant", 98, 98),
    ("ntext", 99, 99),
    ("bit", 104, 104),
    ("decimal", 106, 106),
    ("numeric", 108, 108),
    ("smallmoney", 122, 122),
    ("bigint", 127, 127),
    ("varbinary", 165, 165),
    ("varchar", 167, 167),
    ("binary", 173, 173),
    ("char", 175, 175),
    ("timestamp", 189, 189),
    ("nvarchar", 231, 231),
    ("nchar", 239, 239),
    ("xml", 241, 241),
    ("sysname", 231, 256),
];

pub(crate) fn type_id_of(name: &str) -> Option<i32> {
    let name = parse::parse_name(name).ok()?;
    let base = name.base();
    let base = if base.eq_ignore_ascii_case("rowversion") { "timestamp" } else { base };
    TYPES.iter().find(|(n, ..)| n.eq_ignore_ascii_case(base)).map(|t| t.2)
}

pub(crate) fn type_name_of(id: i64) -> Option<&'static str> {
    TYPES.iter().find(|t| i64::from(t.2) == id).map(|t| t.0)
}

pub(crate) fn data_type(_cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(ty), Some(property)) = (text(args, 0), text(args, 1)) else { return Ok(Value::Null) };
    let Some(id) = type_id_of(&ty) else { return Ok(Value::Null) };
    let base = type_name_of(i64::from(id)).unwrap_or_default();
    let facets: &[i64] = if matches!(base, "decimal" | "numeric") { &[38, 38] } else { &[] };
    let found = SqlType::from_name(base, facets, 8000, Collation::DEFAULT)
        .or_else(|_| SqlType::from_name(base, &[4000], 4000, Collation::DEFAULT));
    let Ok(found) = found else { return Ok(Value::Null) };
    Ok(match property.to_ascii_lowercase().as_str() {
        "precision" => Value::Int(if found.precision() == 0 {
            i32::from(found.max_length_bytes())
        } else {
            i32::from(found.precision())
        }),
        "scale" => Value::Int(i32::from(found.scale())),
        "allowsnull" => Value::Int(1),
        "ownerid" => Value::Int(4),
        "usesansitrim" => Value::Int(1),
        _ => Value::Null,
    })
}

pub(crate) fn collation(_cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (Some(collation), Some(property)) = (text(args, 0), text(args, 1)) else { return Ok(Value::Null) };
    let Ok(found) = Collation::from_name(&collation) else { return Ok(Value::Null) };
    Ok(match property.to_ascii_lowercase().as_str() {
        "codepage" => number(if found.is_utf8() { 65001 } else { 1252 }),
        "lcid" => number(1033),
        "version" => number(i32::from(collation.contains("_100_")) * 2),
        _ => Value::Null,
    })
}

/// `@@OPTIONS`.
pub(crate) fn options(cx: &Cx<'_>) -> i32 {
    let s = &cx.st.settings;
    let bits = [
        (s.implicit_transactions, 2),
        (s.ansi_warnings, 8),
        (s.ansi_padding, 16),
        (s.ansi_nulls, 32),
        (s.arithabort, 64),
        (s.quoted_identifier, 256),
        (s.nocount, 512),
        (s.ansi_null_dflt_on, 1024),
        (s.concat_null_yields_null, 4096),
        (s.xact_abort, 16384),
    ];
    bits.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
}

/// HAS_PERMS_BY_NAME.
pub(crate) fn has_perms(cx: &mut Cx<'_>, args: &[Value]) -> Result<Value> {
    let (securable, class, wanted) = (text(args, 0), text(args, 1), text(args, 2));
    let Some(wanted) = wanted.map(|w| w.to_uppercase()) else { return Ok(Value::Null) };
    let yes = |b: bool| Ok(Value::Int(i32::from(b)));
    let database = cx.st.database;
    let any = ["SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE", "REFERENCES", "ALTER", "VIEW DEFINITION", "CONTROL"];
    match class.map(|c| c.to_uppercase()).as_deref() {
        None => {
            let allowed = permission::has_server(cx, &wanted);
            yes(allowed)
        }
        Some("SERVER") => {
            let allowed = permission::has_server(cx, &wanted);
            yes(allowed)
        }
        Some("DATABASE") => {
            let target = match securable.as_deref().map(unbracket) {
                None => database,
                Some(name) => {
                    let txn = cx.st.txn();
                    match txn.find_database(&name) {
                        Some(d) => d.id,
                        None => return Ok(Value::Null),
                    }
                }
            };
            let allowed = if wanted == "ANY" || wanted == "CONNECT" {
                principal::user_in(cx, target).is_some()
            } else {
                permission::has(cx, Target::Database(target), &wanted)
            };
            yes(allowed)
        }
        Some("SCHEMA") => {
            let Some(name) = securable.map(|s| unbracket(&s)) else { return Ok(Value::Null) };
            let txn = cx.st.txn();
            let Some(schema) = txn.find_schema(database, &name) else { return Ok(Value::Null) };
            let target = Target::Schema(database, schema.id);
            let allowed = if wanted == "ANY" {
                any.iter().any(|p| permission::has(cx, target, p))
            } else {
                permission::has(cx, target, &wanted)
            };
            yes(allowed)
        }
        Some("OBJECT") => {
            let Some(name) = securable.and_then(|s| parse::parse_name(&s).ok()) else { return Ok(Value::Null) };
            if let Some(permitted) = super::catalog::system_permission(cx, &name, &wanted) {
                return yes(permitted);
            }
            let Some(object) = lookup::find(cx, &name) else { return Ok(Value::Null) };
            let allowed = if wanted == "ANY" {
                permission::sees(cx, &object)
            } else {
                permission::has_object(cx, &object, &wanted)
            };
            yes(allowed)
        }
        _ => Ok(Value::Null),
    }
}

fn unbracket(name: &str) -> String {
    parse::parse_name(name).map_or_else(|_| name.to_owned(), |n| n.base().to_owned())
}
