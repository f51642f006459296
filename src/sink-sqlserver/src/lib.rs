//! SQL Server sessions, bulk writer, SQL text and publication.
