//! Row store, lock manager, transactions, redo log, catalog objects.
