//! Statements and what SQL Server answers to them, as the "Transact-SQL reference" and "Database engine events and
//! errors" of Microsoft's documentation have it.

mod documented;
mod harness;
mod parser;
mod statements;
