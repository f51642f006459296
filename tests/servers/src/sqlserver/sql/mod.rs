//! Parser and executor of T-SQL batches.
