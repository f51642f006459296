//! NEXT VALUE FOR.

use super::ast::Name;
use super::bind::Binder;
use super::error::{self, Result};
use super::exec::dml::integer_value;
use super::plan::{Typed, X};
use super::state::Cx;
use super::{lookup, permission, storage};
use crate::sqlserver::store::CounterKey;
use crate::sqlserver::store::catalog::{ObjectBody, ObjectId};
use crate::sqlserver::value::Value;

/// Binds NEXT VALUE FOR a sequence.
pub(crate) fn bind(binder: &mut Binder<'_, '_>, name: &Name) -> Result<Typed> {
    let found = lookup::find(binder.cx, name).ok_or_else(|| error::unknown_object(&name.display()))?;
    let ObjectBody::Sequence(sequence) = &found.body else {
        return Err(error::plain(11726, &format!("Object '{}' is not a sequence object.", name.display())));
    };
    permission::check_object(binder.cx, &found, "UPDATE")?;
    Ok(Typed::new(X::NextValue(found.id), sequence.ty, false))
}

/// Takes the next value.
pub(crate) fn next_value(cx: &mut Cx<'_>, id: ObjectId) -> Result<Value> {
    let txn = cx.st.txn();
    let Some(object) = txn.object(id) else { return Err(error::unknown_object("sequence")) };
    let ObjectBody::Sequence(sequence) = &object.body else { return Err(error::unknown_object(&object.name)) };
    let key = CounterKey::Sequence(id);
    let (low, high) = (sequence.minimum, sequence.maximum);
    let next = match txn.next_counter(key, sequence.start, sequence.increment, low, high) {
        Ok(next) => next,
        Err(_) if sequence.cycle => {
            let first = if sequence.increment > 0 { low } else { high };
            txn.set_counter(key, Some(first));
            first
        }
        Err(crate::sqlserver::store::StoreError::CounterOverflow) => {
            return Err(error::plain(
                11728,
                &format!(
                    "The sequence object '{}' has reached its minimum or maximum value. Restart the sequence object to allow new values to be generated.",
                    object.name
                ),
            ));
        }
        Err(e) => return Err(storage::error(cx, e)),
    };
    integer_value(next, &sequence.ty)
}
