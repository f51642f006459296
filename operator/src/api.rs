//! Calls to the API server: every one under a deadline of its own, and what its answer means.
//!
//! The client's own retry layer is off: it repeats POSTs. What failed is decided again from a new look.

use std::future::Future;
use std::time::Duration;

use kube::core::Status;

/// Longest wait for one answer. A lease outlives it several times ([`crate::lease`]).
pub const CALL_DEADLINE: Duration = Duration::from_secs(8);

/// Why a call brought nothing.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API server refused it.
    #[error("the API server refused to {what}: {} {}", status.code, status.reason)]
    Refused {
        /// The call.
        what: &'static str,
        /// The answer.
        status: Box<Status>,
    },
    /// No answer in time: whether it took effect is unknown.
    #[error("the API server did not answer in time when asked to {what}")]
    Silent {
        /// The call.
        what: &'static str,
    },
    /// The call did not come through, or its answer could not be read.
    #[error("the call to {what} failed: {cause}")]
    Failed {
        /// The call.
        what: &'static str,
        /// The cause, without any body.
        cause: String,
    },
}

impl ApiError {
    fn refused(&self) -> Option<&Status> {
        match self {
            ApiError::Refused { status, .. } => Some(status),
            ApiError::Silent { .. } | ApiError::Failed { .. } => None,
        }
    }

    /// Whether there is no such object.
    pub fn is_absent(&self) -> bool {
        self.refused().is_some_and(|status| status.code == 404)
    }

    /// Whether an object of that name exists already.
    pub fn exists(&self) -> bool {
        self.refused().is_some_and(|status| status.code == 409 && status.reason == "AlreadyExists")
    }

    /// Whether the object changed since it was read, or is another one than was meant.
    pub fn is_conflict(&self) -> bool {
        self.refused().is_some_and(|status| status.code == 409 && status.reason != "AlreadyExists")
    }

    /// Whether the namespace is being deleted, and takes nothing new any more.
    pub fn is_namespace_terminating(&self) -> bool {
        let causes =
            |status: &Status| status.details.as_ref().map(|details| details.causes.clone()).unwrap_or_default();
        self.refused().is_some_and(|status| {
            status.code == 403 && causes(status).iter().any(|cause| cause.reason == "NamespaceTerminating")
        })
    }

    /// What the API server says to a person, when it will say the same again: a quota, a policy, a missing right.
    pub fn lasting(&self) -> Option<&str> {
        self.refused().filter(|status| matches!(status.code, 400 | 403 | 422)).map(|status| status.message.as_str())
    }
}

/// Awaits a call under its deadline. `what` completes "refused to".
///
/// # Errors
/// [`ApiError`].
pub async fn call<T>(what: &'static str, call: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    call_within(CALL_DEADLINE, what, call).await
}

/// As [`call`], with another deadline.
///
/// # Errors
/// [`ApiError`].
pub async fn call_within<T>(
    deadline: Duration,
    what: &'static str,
    call: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApiError> {
    match tokio::time::timeout(deadline, call).await {
        Err(_) => Err(ApiError::Silent { what }),
        Ok(Ok(value)) => Ok(value),
        Ok(Err(kube::Error::Api(status))) => Err(ApiError::Refused { what, status }),
        Ok(Err(error)) => Err(ApiError::Failed { what, cause: error.to_string() }),
    }
}

/// The answer, or `None` where there is no such object.
///
/// # Errors
/// Any other [`ApiError`].
pub fn found<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, reason: &str) -> ApiError {
        let status = Status { code, reason: reason.into(), message: "m".into(), ..Status::default() };
        ApiError::Refused { what: "x", status: Box::new(status) }
    }

    #[test]
    fn answers_are_told_apart() {
        assert!(refused(404, "NotFound").is_absent());
        assert!(refused(409, "AlreadyExists").exists() && !refused(409, "AlreadyExists").is_conflict());
        assert!(refused(409, "Conflict").is_conflict() && !refused(409, "Conflict").exists());
        assert_eq!(refused(403, "Forbidden").lasting(), Some("m"));
        assert_eq!(refused(503, "ServiceUnavailable").lasting(), None);
        assert!(!refused(403, "Forbidden").is_namespace_terminating());
        let details = serde_json::json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "m",
            "details": {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}});
        let status = serde_json::from_value(details).expect("an answer");
        assert!(ApiError::Refused { what: "x", status }.is_namespace_terminating());
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_does_not_hold_us() {
        let answer = call("wait", std::future::pending::<kube::Result<()>>()).await;
        assert!(matches!(answer, Err(ApiError::Silent { .. })));
    }
}
