//! One case of a vector file: typed access that remembers what was read, and the differences rules.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

use contract::canon::Json;
use contract::digest::Digest;
use contract::error::Refusal;
use num_bigint::BigInt;
use serde_json::Value;

/// The verdict of a check: why the case fails.
pub type Check = Result<(), String>;

/// A failure with its reason.
pub fn fail<T>(reason: impl Into<String>) -> Result<T, String> {
    Err(reason.into())
}

/// Fails unless the condition holds.
pub fn require(holds: bool, what: &str) -> Check {
    if holds { Ok(()) } else { fail(what) }
}

/// Fails unless both are equal.
pub fn same<A: PartialEq<B> + Debug, B: Debug>(what: &str, got: A, want: B) -> Check {
    if got == want { Ok(()) } else { fail(format!("{what}: got {got:?}, want {want:?}")) }
}

/// A case.
pub struct Case {
    index: usize,
    value: Value,
    read: RefCell<BTreeSet<String>>,
}

impl Case {
    pub fn new(index: usize, value: Value) -> Self {
        let read = ["group", "id", "notes"].into_iter().map(str::to_owned).collect();
        Case { index, value, read: RefCell::new(read) }
    }

    /// Id of the case, or its position in the file.
    pub fn name(&self) -> String {
        self.value["id"].as_str().map_or_else(|| format!("#{}", self.index), str::to_owned)
    }

    /// A field; absent and null are the same.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.read.borrow_mut().insert(key.to_owned());
        self.value.get(key).filter(|value| !value.is_null())
    }

    /// A field that must be there.
    pub fn field(&self, key: &str) -> Result<&Value, String> {
        self.get(key).ok_or_else(|| format!("the case has no {key}"))
    }

    /// A text field.
    pub fn text(&self, key: &str) -> Result<&str, String> {
        self.field(key)?.as_str().ok_or_else(|| format!("{key} is no text"))
    }

    /// A text field or null.
    pub fn optional_text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }

    /// A number of at most 64 bits.
    pub fn u64(&self, key: &str) -> Result<u64, String> {
        self.field(key)?.as_u64().ok_or_else(|| format!("{key} is no u64"))
    }

    /// An integer given as a JSON number or as a text.
    pub fn integer(&self, key: &str) -> Result<BigInt, String> {
        let value = self.field(key)?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.parse().map_err(|_| format!("{key} is no integer"))
    }

    /// A digest field.
    pub fn digest(&self, key: &str) -> Result<Digest, String> {
        self.text(key)?.parse().map_err(|_| format!("{key} is no digest"))
    }

    /// Bytes of a hex field.
    pub fn bytes(&self, key: &str) -> Result<Vec<u8>, String> {
        unhex(self.text(key)?).ok_or_else(|| format!("{key} is no hex"))
    }

    /// A field as canonical value; null when absent.
    pub fn json(&self, key: &str) -> Result<Json, String> {
        json(self.get(key).unwrap_or(&Value::Null))
    }

    /// Checks a verdict against `error`: the refusal's code, or success when `error` is null.
    pub fn verdict<T>(&self, got: Result<T, Refusal>) -> Result<Option<T>, String> {
        let want = self.optional_text("error");
        match (got, want) {
            (Ok(value), None) => Ok(Some(value)),
            (Err(refusal), Some(code)) if refusal.code.as_str() == code => Ok(None),
            (Err(refusal), _) => fail(format!("refused with {refusal}, want {want:?}")),
            (Ok(_), Some(code)) => fail(format!("accepted, want {code}")),
        }
    }

    /// Fails if the check never looked at a field. A foreign folder may carry notes of its own.
    pub fn all_read(&self) -> Check {
        let read = self.read.borrow();
        let unread: Vec<&String> =
            self.value.as_object().into_iter().flat_map(|o| o.keys()).filter(|key| !read.contains(*key)).collect();
        let own_folder = std::env::var_os("NT_VECTORS").is_none();
        require(unread.is_empty() || !own_folder, &format!("fields without a check: {unread:?}"))
    }
}

/// A JSON value as canonical value.
pub fn json(value: &Value) -> Result<Json, String> {
    Json::try_from(value).map_err(|error| error.to_string())
}

/// Bytes of lower-case hex.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    digits.len().is_multiple_of(2).then_some(())?;
    digits.chunks_exact(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The rules of `tests/vectors/differences.json`: where our verdict is better than the prior system's.
///
/// A rule is `{file, group, when, verdict, why}`. `when` gives conditions on fields of the input: a value means equal,
/// `{"in": [..]}` one of, `{"without": [..]}` an array with none of, `{"not_all": v}` an array that is empty or has
/// another item; several of them together must all hold. Where all hold, the fields of `verdict` replace those of the case.
pub struct Differences {
    rules: Vec<Value>,
}

impl Differences {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("differences: {error}"));
        let rules = document["rules"].as_array().cloned().unwrap_or_default();
        for rule in &rules {
            let conditions = rule["when"].as_object().unwrap_or_else(|| panic!("a rule without conditions: {rule}"));
            assert!(!conditions.contains_key("id"), "a rule cannot name cases: {rule}");
        }
        Differences { rules }
    }

    /// File and group of each rule.
    pub fn subjects(&self) -> impl Iterator<Item = (&str, &str)> {
        let text = |rule: &'_ Value, key: &str| rule[key].as_str().is_some();
        assert!(self.rules.iter().all(|rule| text(rule, "file") && text(rule, "group") && text(rule, "why")));
        self.rules.iter().filter_map(|rule| Some((rule["file"].as_str()?, rule["group"].as_str()?)))
    }

    pub fn apply(&self, file: &str, case: &Value) -> Value {
        let mut case = case.clone();
        for rule in &self.rules {
            let here = rule["file"] == file && rule["group"] == case["group"];
            let conditions = rule["when"].as_object().into_iter().flatten();
            if here && conditions.into_iter().all(|(field, condition)| holds(&case[field], condition)) {
                for (field, verdict) in rule["verdict"].as_object().into_iter().flatten() {
                    case[field] = verdict.clone();
                }
            }
        }
        case
    }
}

fn holds(value: &Value, condition: &Value) -> bool {
    let Some(operators) = condition.as_object() else {
        return value == condition;
    };
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    operators.iter().all(|(operator, operand)| match operator.as_str() {
        "in" => operand.as_array().is_some_and(|options| options.contains(value)),
        "without" => operand.as_array().is_some_and(|banned| items.iter().all(|item| !banned.contains(item))),
        "not_all" => items.is_empty() || items.iter().any(|item| item != operand),
        other => panic!("unknown condition {other:?} in the differences"),
    })
}
