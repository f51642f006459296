//! How far a running worker is, asked over HTTP. It is shown, and never feeds a decision.

use std::net::IpAddr;
use std::time::Duration;

use contract::worker::{PROGRESS_BYTES_MAX, Progress, RunTag};
use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::build::PROGRESS_PORT;
use super::status::time;
use crate::crd::status::ProgressStatus;

/// Longest wait for an answer.
const DEADLINE: Duration = Duration::from_secs(1);

/// Longest head of an answer, bytes.
const HEAD_BYTES_MAX: usize = 2048;

/// Asks the pod; `None` for whatever is not the answer of this very pod about this run.
pub async fn ask(pod: &Pod, run_id: &str, now: i64) -> Option<ProgressStatus> {
    let address: IpAddr = pod.status.as_ref()?.pod_ip.as_deref()?.parse().ok()?;
    let uid = pod.metadata.uid.as_deref()?;
    let port = u16::try_from(PROGRESS_PORT).ok()?;
    let answer = tokio::time::timeout(DEADLINE, fetch(address, port)).await.ok()?.ok()?;
    let progress = Progress::parse(body(&answer)?, uid, &RunTag::of(run_id))?;
    let number = |value: u64| Some(i64::try_from(value).unwrap_or(i64::MAX));
    Some(ProgressStatus {
        stage: Some(progress.stage.text().to_owned()),
        rows_read: number(progress.rows_read),
        bytes_encoded: number(progress.bytes_encoded),
        chunks_sealed: number(progress.chunks_sealed),
        chunks_verified: number(progress.chunks_verified),
        observed_at: Some(time(now)),
    })
}

async fn fetch(address: IpAddr, port: u16) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect((address, port)).await?;
    stream.write_all(b"GET /progress HTTP/1.1\r\nHost: worker\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    let most = HEAD_BYTES_MAX + PROGRESS_BYTES_MAX + 1;
    stream.take(u64::try_from(most).unwrap_or(u64::MAX)).read_to_end(&mut answer).await?;
    Ok(answer)
}

/// The body of an answer 200 that has a head of an allowed length.
fn body(answer: &[u8]) -> Option<&[u8]> {
    let head = answer.windows(4).take(HEAD_BYTES_MAX).position(|window| window == b"\r\n\r\n")?;
    answer.starts_with(b"HTTP/1.1 200").then(|| &answer[head + 4..])
}

/// Whether two answers differ in more than the time they were given at.
pub fn moved(old: Option<&ProgressStatus>, new: &ProgressStatus) -> bool {
    old.is_none_or(|old| {
        ProgressStatus { observed_at: None, ..old.clone() } != ProgressStatus { observed_at: None, ..new.clone() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_body_of_an_answer_200_is_read() {
        assert_eq!(body(b"HTTP/1.1 200 OK\r\na: b\r\n\r\n{}"), Some(&b"{}"[..]));
        assert_eq!(body(b"HTTP/1.1 404 Not Found\r\n\r\n{}"), None);
        assert_eq!(body(b"HTTP/1.1 200 OK\r\n"), None);
        let mut long = b"HTTP/1.1 200 OK\r\n".to_vec();
        long.extend(vec![b'a'; HEAD_BYTES_MAX]);
        long.extend(b"\r\n\r\n{}");
        assert_eq!(body(&long), None);
    }

    #[test]
    fn a_time_alone_is_no_progress() {
        let one = ProgressStatus { rows_read: Some(1), observed_at: Some(time(1)), ..ProgressStatus::default() };
        let later = ProgressStatus { observed_at: Some(time(9)), ..one.clone() };
        assert!(!moved(Some(&one), &later));
        assert!(moved(Some(&one), &ProgressStatus { rows_read: Some(2), ..later }));
        assert!(moved(None, &one));
    }
}
