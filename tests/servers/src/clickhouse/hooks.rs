//! Barriers for tests: something is done after a query has arrived and before the engine sees it.
//!
//! This is how a race is made certain: the change happens at a named moment, and nobody sleeps.

use parking_lot::Mutex;

type Pattern = Box<dyn Fn(&str) -> bool + Send>;
type Action = Box<dyn FnOnce() + Send>;

/// Actions that wait for their query.
#[derive(Default)]
pub(crate) struct Hooks(Mutex<Vec<(Pattern, Action)>>);

impl Hooks {
    /// Does `action` once, before the next query whose text fits `pattern`.
    pub(crate) fn add(&self, pattern: Pattern, action: Action) {
        self.0.lock().push((pattern, action));
    }

    /// Does what waits for this query. The query waits for it; other queries do not.
    pub(crate) fn call(&self, query: &str) {
        let due = {
            let mut waiting = self.0.lock();
            let at = waiting.iter().position(|(pattern, _)| pattern(query));
            at.map(|at| waiting.remove(at).1)
        };
        if let Some(action) = due {
            action();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::Hooks;

    #[test]
    fn an_action_is_done_once_before_its_query() {
        let (hooks, done) = (Hooks::default(), Arc::new(AtomicU32::new(0)));
        let count = Arc::clone(&done);
        hooks.add(
            Box::new(|query| query.starts_with("SELECT `k`")),
            Box::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            }),
        );
        hooks.call("EXPLAIN SELECT `k`");
        assert_eq!(done.load(Ordering::Relaxed), 0);
        hooks.call("SELECT `k` FROM t");
        hooks.call("SELECT `k` FROM t");
        assert_eq!(done.load(Ordering::Relaxed), 1);
    }
}
