//! The source in memory: scripted blocks and an end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contract::block::Block;
use contract::canon::strict;
use contract::civil::Instant;
use contract::digest::Digest;
use contract::error::PortError;
use contract::port::source::{
    GuardSettings, RawProfileDocument, Source, SourceAdmission, SourceColumn, SourceEof, SourceFactory, SourceMode,
    SourceRequest,
};
use contract::raw::eof::EofDescriptor;
use contract::transfer::TransferEvent;

use super::database::Violations;
use super::faults::Faults;
use super::store::Store;
use super::transfer::{COLUMNS, RELATION_UUID, Transfer, profile};

/// Opens sessions over a script.
#[derive(Debug, Clone)]
pub(super) struct SimFactory {
    pub(super) transfer: Arc<Transfer>,
    pub(super) faults: Faults,
    pub(super) store: Store,
    pub(super) run: String,
    pub(super) violations: Violations,
    /// Queries opened for the run.
    pub(super) opened: Arc<AtomicU32>,
    /// Blocks handed out.
    pub(super) pulled: Arc<AtomicU32>,
}

#[derive(Debug)]
pub(super) struct SimSource {
    factory: SimFactory,
    raw: bool,
    query_id: String,
    next: usize,
}

impl SimFactory {
    async fn call<R: Send + 'static>(
        &self,
        call: &str,
        effect: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, PortError> {
        self.faults.call(call, || Ok(effect()), drop).await
    }

    fn untouched_after_eof(&self, what: &str) {
        if self.store.has_event(&self.run, TransferEvent::EofSealed.text()) {
            self.violations.add(format!("{what} after the end of the source was sealed"));
        }
    }
}

impl SourceFactory for SimFactory {
    type Session = SimSource;

    async fn connect(&self) -> Result<SimSource, PortError> {
        self.untouched_after_eof("a source session");
        let session = SimSource { factory: self.clone(), raw: false, query_id: String::new(), next: 0 };
        self.call("source connect", move || session).await
    }
}

impl Source for SimSource {
    async fn admit(&mut self, request: &SourceRequest) -> Result<SourceAdmission, PortError> {
        self.raw = matches!(request.mode, SourceMode::ExactRawRows(_));
        let admission = admission(request, self.raw);
        self.factory.call("source admit", move || admission).await
    }

    async fn open(&mut self, _admission: &SourceAdmission, query_id: &str) -> Result<(), PortError> {
        let factory = &self.factory;
        factory.untouched_after_eof("a source query");
        if !factory.store.has_event(&factory.run, TransferEvent::ExtractionBegan.text()) {
            factory.violations.add("a source query without its intent".to_owned());
        }
        self.query_id = query_id.to_owned();
        let (opened, violations) = (Arc::clone(&factory.opened), factory.violations.clone());
        let open = move || {
            if opened.fetch_add(1, Ordering::Relaxed) > 0 {
                violations.add("the source query of a run was opened twice".to_owned());
            }
        };
        factory.call("source open", open).await
    }

    async fn next_block(&mut self) -> Result<Option<Block>, PortError> {
        let block = self.factory.transfer.blocks.get(self.next).cloned();
        self.next += 1;
        let pulled = Arc::clone(&self.factory.pulled);
        let pull = move || {
            pulled.fetch_add(u32::from(block.is_some()), Ordering::Relaxed);
            block
        };
        self.factory.call("source next_block", pull).await
    }

    async fn finish(self) -> Result<SourceEof, PortError> {
        let transfer = &self.factory.transfer;
        let rows = transfer.counted.unwrap_or(transfer.rows());
        let physical = Digest::of(b"physical");
        let descriptor = self.raw.then(|| {
            let eof = EofDescriptor::seal(&self.query_id, rows, Digest::of(b"coverage"), physical, physical);
            strict(&eof.document())
        });
        self.factory
            .call("source finish", move || SourceEof { rows, decoded_bytes: rows * 16, descriptor, coverage: None })
            .await
    }

    async fn cancel(self) {
        // Its failure is nobody's business: the socket is closed in any case.
        drop(self.factory.call("source cancel", || ()).await);
    }
}

fn admission(request: &SourceRequest, raw: bool) -> SourceAdmission {
    let column = |(name, text, header, _): &(&str, &str, &str, &str)| SourceColumn {
        name: (*name).to_owned(),
        type_text: (*text).to_owned(),
        expression: format!("`{name}`"),
        header_type: (*header).to_owned(),
    };
    let window = request.window.as_ref().map(|window| {
        let bound = |micros: i64| Instant::from_micros(micros).unwrap().isoformat();
        [window.column.clone(), bound(window.start_micros), bound(window.end_micros)]
    });
    let profile = raw.then(|| {
        let canonical = profile(window).canonical();
        RawProfileDocument { sha256: Digest::of(&canonical).to_string(), canonical }
    });
    SourceAdmission {
        request: request.clone(),
        relation_uuid: RELATION_UUID.to_owned(),
        engine: "MergeTree".to_owned(),
        server_revision: "54513".to_owned(),
        columns: COLUMNS.iter().map(column).collect(),
        query_shape: "SELECT".to_owned(),
        physical_profile_sha256: profile.as_ref().map(|_| Digest::of(b"physical").to_string()),
        profile,
        guards: GuardSettings { version: "sim", sent: Vec::new(), unknown_to_server: Vec::new() },
        access_sha256: None,
        replica: None,
    }
}
