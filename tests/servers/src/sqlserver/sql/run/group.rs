//! Grouping by hash; one pass for all grouping sets.

use std::collections::HashMap;

use super::super::error::Result;
use super::super::plan::{Aggregate, AggregateX, GroupPlan, Row, SelectPlan, Sink, Step};
use super::super::state::Cx;
use super::aggregate::Accumulator;
use crate::sqlserver::value::{Value, sort_key};

struct Group {
    keys: Row,
    states: Vec<Accumulator>,
}

/// Groups of one grouping set and their places by key.
type Groups = (HashMap<Vec<u8>, usize>, Vec<Group>);

impl GroupPlan {
    fn states(&self) -> Vec<Accumulator> {
        self.aggregates.iter().map(Accumulator::new).collect()
    }

    pub(super) fn run(&self, plan: &SelectPlan, startup: bool, cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        let mut row = vec![Value::Null; plan.width];
        if self.scalar {
            let mut states = self.states();
            if startup {
                plan.from.run(cx, &mut row, &mut |cx, row| {
                    self.add(&mut states, cx, row)?;
                    Ok(Step::More)
                })?;
            }
            let group = Group { keys: Row::new(), states };
            return self.emit(group, &[], cx, sink);
        }
        let mut sets: Vec<Groups> = self.sets.iter().map(|_| (HashMap::new(), Vec::new())).collect();
        if startup {
            plan.from.run(cx, &mut row, &mut |cx, row| {
                let mut keys = Row::with_capacity(self.keys.len());
                for (x, _) in &self.keys {
                    keys.push(x.eval(cx, row)?);
                }
                for (mask, (index, groups)) in self.sets.iter().zip(&mut sets) {
                    let at = self.find(mask, &keys, index, groups);
                    self.add(&mut groups[at].states, cx, row)?;
                }
                Ok(Step::More)
            })?;
        }
        for (mask, (_, groups)) in self.sets.iter().zip(sets) {
            if groups.is_empty() && mask.iter().all(|kept| !kept) && self.sets.len() > 1 {
                // The grand total has a row even over no rows.
                let group = Group { keys: vec![Value::Null; self.keys.len()], states: self.states() };
                if self.emit(group, mask, cx, sink)? == Step::Stop {
                    return Ok(Step::Stop);
                }
            }
            for group in groups {
                if self.emit(group, mask, cx, sink)? == Step::Stop {
                    return Ok(Step::Stop);
                }
            }
        }
        Ok(Step::More)
    }

    fn find(
        &self,
        mask: &[bool],
        keys: &[Value],
        index: &mut HashMap<Vec<u8>, usize>,
        groups: &mut Vec<Group>,
    ) -> usize {
        let mut bytes = Vec::with_capacity(keys.len() * 12);
        for ((value, (_, ty)), kept) in keys.iter().zip(&self.keys).zip(mask) {
            if *kept {
                sort_key(value, ty, &mut bytes);
            }
        }
        *index.entry(bytes).or_insert_with(|| {
            let kept = keys.iter().zip(mask).map(|(v, kept)| if *kept { v.clone() } else { Value::Null }).collect();
            groups.push(Group { keys: kept, states: self.states() });
            groups.len() - 1
        })
    }

    fn add(&self, states: &mut [Accumulator], cx: &mut Cx<'_>, row: &[Value]) -> Result<()> {
        for (state, aggregate) in states.iter_mut().zip(&self.aggregates) {
            state.add(aggregate, cx, row)?;
        }
        Ok(())
    }

    fn emit(&self, group: Group, mask: &[bool], cx: &mut Cx<'_>, sink: &mut Sink<'_>) -> Result<Step> {
        let mut out = group.keys;
        for (state, aggregate) in group.states.into_iter().zip(&self.aggregates) {
            if aggregate.kind == Aggregate::Grouping {
                let grouped = mask.get(aggregate.key).copied().unwrap_or(true);
                out.push(Value::TinyInt(u8::from(!grouped)));
                continue;
            }
            out.push(state.finish(aggregate, cx)?);
        }
        sink(cx, &mut out)
    }
}

/// Aggregates over rows that are given one by one (window frames).
pub(super) fn over_rows(aggregate: &AggregateX, rows: &[&Row], cx: &mut Cx<'_>) -> Result<Value> {
    let mut state = Accumulator::new(aggregate);
    for row in rows {
        state.add(aggregate, cx, row)?;
    }
    state.finish(aggregate, cx)
}
