//! Replies: status, headers, and the body that follows.

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;
use tokio::sync::mpsc::Receiver;

use super::body::{Departure, ReplyBody, StreamedReply};
use super::work::{Begin, Part};
use crate::clickhouse::Shared;
use crate::clickhouse::connection::Counts;
use crate::clickhouse::engine::EngineError;

/// A short text.
pub(super) fn text(text: &'static str) -> Response<ReplyBody> {
    Response::new(Either::Left(Full::new(Bytes::from_static(text.as_bytes()))))
}

/// The text of an error as a server writes it into a body.
pub(super) fn error_text(shared: &Shared, error: &EngineError) -> String {
    format!("{error} (version {} (testkit))\n", shared.engine.version().text)
}

/// A reply that is an error.
pub(super) fn error(shared: &Shared, query_id: &str, error: &EngineError) -> Response<ReplyBody> {
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(error_text(shared, error)))));
    *response.status_mut() = status(error.code);
    common_headers(&mut response, shared, query_id);
    put(&mut response, "x-clickhouse-exception-code", &error.code.to_string());
    put(&mut response, CONTENT_TYPE.as_str(), "text/plain; charset=UTF-8");
    response
}

/// A reply whose body is still being made.
pub(super) fn stream(
    shared: &Shared,
    query_id: &str,
    begin: &Begin,
    parts: Receiver<Part>,
    departure: Departure,
) -> Response<ReplyBody> {
    let mut response = Response::new(Either::Right(StreamedReply::new(parts, departure)));
    common_headers(&mut response, shared, query_id);
    put(&mut response, CONTENT_TYPE.as_str(), content_type(&begin.format));
    put(&mut response, "x-clickhouse-format", &begin.format);
    put(&mut response, "x-clickhouse-timezone", &shared.engine.version().timezone);
    put(&mut response, "x-clickhouse-summary", &summary(begin.counts));
    response
}

fn common_headers(response: &mut Response<ReplyBody>, shared: &Shared, query_id: &str) {
    put(response, "x-clickhouse-server-display-name", "testkit clickhouse");
    put(response, "x-clickhouse-server-version", &shared.engine.version().text);
    put(response, "x-clickhouse-query-id", query_id);
}

/// Sets a header; a value that no header can hold (a query id of a client, say) is left out.
fn put(response: &mut Response<ReplyBody>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn summary(counts: Counts) -> String {
    let text = |number: u64| number.to_string();
    json!({
        "read_rows": text(counts.read_rows), "read_bytes": text(counts.read_bytes),
        "written_rows": text(counts.written_rows), "written_bytes": text(counts.written_bytes),
        "total_rows_to_read": "0", "result_rows": text(counts.rows), "result_bytes": text(counts.bytes),
    })
    .to_string()
}

fn content_type(format: &str) -> &'static str {
    match format {
        "TabSeparated"
        | "TSV"
        | "TabSeparatedRaw"
        | "TSVRaw"
        | "TabSeparatedWithNames"
        | "TSVWithNames"
        | "TabSeparatedWithNamesAndTypes"
        | "TSVWithNamesAndTypes" => "text/tab-separated-values; charset=UTF-8",
        "CSV" => "text/csv; charset=UTF-8; header=absent",
        "CSVWithNames" | "CSVWithNamesAndTypes" => "text/csv; charset=UTF-8; header=present",
        "JSON" | "JSONCompact" | "JSONStrings" | "JSONCompactStrings" => "application/json; charset=UTF-8",
        "JSONEachRow" | "JSONCompactEachRow" => "application/x-ndjson; charset=UTF-8",
        "Pretty" | "PrettyCompact" | "Vertical" | "Values" => "text/plain; charset=UTF-8",
        _ => "application/octet-stream",
    }
}

/// The HTTP status of an error, as ClickHouse's `exceptionCodeToHTTPStatus` has it.
fn status(code: i32) -> StatusCode {
    match code {
        194 => StatusCode::UNAUTHORIZED,
        164 | 192 | 193 | 497 | 516 => StatusCode::FORBIDDEN,
        6 | 25 | 26 | 27 | 36 | 38 | 41 | 43 | 53 | 62 | 69 | 70 | 72 | 117 | 386 | 427 | 441 => {
            StatusCode::BAD_REQUEST
        }
        16 | 46 | 47 | 50 | 56 | 60 | 63 | 73 | 81 | 115 | 372 => StatusCode::NOT_FOUND,
        131 => StatusCode::PAYLOAD_TOO_LARGE,
        48 => StatusCode::NOT_IMPLEMENTED,
        159 => StatusCode::REQUEST_TIMEOUT,
        76 | 209 => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
