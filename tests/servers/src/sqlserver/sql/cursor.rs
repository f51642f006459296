//! Cursors: the rows of a query, taken when it is opened.

use super::plan::Row;
use crate::sqlserver::value::SqlType;

/// A declared cursor.
pub(crate) struct Cursor {
    pub(crate) query: Box<super::ast::Query>,
    /// Rows while it is open.
    pub(crate) rows: Option<Vec<Row>>,
    pub(crate) meta: Vec<super::plan::OutCol>,
    /// Row that was fetched last, from 1; 0 is before the first.
    pub(crate) at: usize,
}

impl Cursor {
    /// Types of its columns.
    pub(crate) fn types(&self) -> Vec<SqlType> {
        self.meta.iter().map(|c| c.ty).collect()
    }
}
