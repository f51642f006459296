//! The C interface of `libchdb.so` (26.7), and the only unsafe code of this package.
//!
//! Prototypes are those of `chdb.h` of release 26.7.3 (<https://github.com/chdb-io/chdb>, `programs/local/chdb.h`). What the
//! wrappers rely on, from that header: the functions may be called from any thread; one connection runs one statement at a
//! time; a result handle owns its buffer until it is destroyed; a stream handle needs its connection open, which the
//! lifetimes below express.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW, Symbol};

use super::connection::{Counts, Parameters};

/// A handle whose content belongs to the library.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
    /// Neither `Send` nor `Sync` by itself; each wrapper says what holds for it.
    _marker: PhantomData<*mut c_void>,
}

type Handle = *mut Opaque;
type WithText<R> = unsafe extern "C" fn(Handle, *const c_char, usize, *const c_char, usize) -> R;
type WithParameters = unsafe extern "C" fn(
    Handle,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    *const *const c_char,
    *const usize,
    usize,
) -> Handle;
type Count = unsafe extern "C" fn(Handle) -> u64;

/// The kernel's id of the calling thread, which is what the engine shows in `system.processes.thread_ids`.
pub(super) fn thread_id() -> i32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() }
}

unsafe extern "C" {
    /// glibc's `on_exit(3)`: as atexit, but the function learns the status.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Ends the process at once. A process that ends while the engine runs would destroy the library's globals under the
/// engine's threads, and sometimes die of it; what the engine has acknowledged is on disk by then.
extern "C" fn leave(status: c_int, _argument: *mut c_void) {
    // SAFETY: ends the process and does not return.
    unsafe { libc::_exit(status) };
}

/// Why the engine's library could not be used.
#[derive(Debug, thiserror::Error)]
#[error("test_clickhouse.library: {0}")]
pub struct LoadError(#[from] libloading::Error);

/// The loaded library: its functions, resolved once.
pub(super) struct Chdb {
    connect: unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut Handle,
    close: unsafe extern "C" fn(*mut Handle),
    query: WithParameters,
    stream: WithParameters,
    fetch: unsafe extern "C" fn(Handle, Handle) -> Handle,
    cancel_stream: unsafe extern "C" fn(Handle, Handle),
    destroy_result: unsafe extern "C" fn(Handle),
    insert: WithText<Handle>,
    append: unsafe extern "C" fn(Handle, *const c_void, usize) -> c_int,
    insert_done: unsafe extern "C" fn(Handle) -> Handle,
    insert_cancel: unsafe extern "C" fn(Handle),
    insert_error: unsafe extern "C" fn(Handle) -> *const c_char,
    insert_destroy: unsafe extern "C" fn(Handle),
    buffer: unsafe extern "C" fn(Handle) -> *const u8,
    length: unsafe extern "C" fn(Handle) -> usize,
    error: unsafe extern "C" fn(Handle) -> *const c_char,
    rows: Count,
    bytes: Count,
    storage_rows: Count,
    storage_bytes: Count,
    rows_written: Count,
    bytes_written: Count,
}

impl Chdb {
    /// Loads the library and keeps the host's own signal handlers. It stays loaded for the life of the process: the engine
    /// has threads of its own.
    pub(super) fn load(path: &Path) -> Result<&'static Chdb, LoadError> {
        // SAFETY: loading runs the library's initialisers; libchdb.so of the pinned digest is made to be loaded this way.
        // RTLD_LOCAL keeps its bundled C++ runtime away from ours.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }?;
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the field's type is the prototype that chdb.h gives this name.
                let symbol: Symbol<_> = unsafe { library.get(concat!($name, "\0").as_bytes()) }?;
                *symbol
            }};
        }
        // SAFETY: as above.
        let quiet: Symbol<unsafe extern "C" fn(c_int)> = unsafe { library.get(b"chdb_set_signal_handlers_enabled\0") }?;
        // SAFETY: to be called before the first connection, with a plain flag.
        unsafe { quiet(0) };
        let chdb = Chdb {
            connect: function!("chdb_connect"),
            close: function!("chdb_close_conn"),
            query: function!("chdb_query_with_params_n"),
            stream: function!("chdb_stream_query_with_params_n"),
            fetch: function!("chdb_stream_fetch_result"),
            cancel_stream: function!("chdb_stream_cancel_query"),
            destroy_result: function!("chdb_destroy_query_result"),
            insert: function!("chdb_stream_insert_n"),
            append: function!("chdb_stream_append"),
            insert_done: function!("chdb_stream_done"),
            insert_cancel: function!("chdb_stream_cancel_insert"),
            insert_error: function!("chdb_stream_insert_error"),
            insert_destroy: function!("chdb_destroy_insert_stream"),
            buffer: function!("chdb_result_buffer"),
            length: function!("chdb_result_length"),
            error: function!("chdb_result_error"),
            rows: function!("chdb_result_rows_read"),
            bytes: function!("chdb_result_bytes_read"),
            storage_rows: function!("chdb_result_storage_rows_read"),
            storage_bytes: function!("chdb_result_storage_bytes_read"),
            rows_written: function!("chdb_result_rows_written"),
            bytes_written: function!("chdb_result_bytes_written"),
        };
        std::mem::forget(library);
        // SAFETY: `leave` is a plain function that lives as long as the process. It is registered after the library's own
        // destructors, so it runs before them.
        unsafe { on_exit(leave, std::ptr::null_mut()) };
        Ok(Box::leak(Box::new(chdb)))
    }

    /// Opens a connection; the first one starts the engine. `None` when the engine refuses (it says why on stderr).
    pub(super) fn connect(&'static self, arguments: &[String]) -> Option<Connection> {
        let mut owned = vec![CString::from(c"clickhouse")];
        for argument in arguments {
            owned.push(CString::new(argument.as_bytes()).ok()?);
        }
        let mut pointers: Vec<*mut c_char> = owned.iter().map(|text| text.as_ptr().cast_mut()).collect();
        let count = c_int::try_from(pointers.len()).ok()?;
        // SAFETY: `pointers` holds `count` NUL-terminated strings that outlive the call; the library copies what it keeps.
        let slot = NonNull::new(unsafe { (self.connect)(count, pointers.as_mut_ptr()) })?;
        Some(Connection { chdb: self, slot })
    }

    /// The text behind an error pointer of the library.
    fn text(pointer: *const c_char) -> Option<String> {
        // SAFETY: the library gives NULL or a NUL-terminated string that lives as long as the handle it was asked of.
        (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
    }
}

/// One connection with its own session: settings, current database, temporary tables.
pub(super) struct Connection {
    chdb: &'static Chdb,
    slot: NonNull<Handle>,
}

// SAFETY: the library allows a connection to be used from any thread, one call at a time; `&mut self` gives that.
unsafe impl Send for Connection {}

impl Connection {
    fn handle(&mut self) -> Handle {
        // SAFETY: `slot` came from chdb_connect and is closed only by drop.
        unsafe { *self.slot.as_ptr() }
    }

    fn call(&mut self, function: WithParameters, sql: &str, format: &str, parameters: &Parameters) -> Handle {
        let pointer = |text: &String| text.as_ptr().cast::<c_char>();
        let names: Vec<_> = parameters.iter().map(|(name, _)| pointer(name)).collect();
        let name_lengths: Vec<_> = parameters.iter().map(|(name, _)| name.len()).collect();
        let values: Vec<_> = parameters.iter().map(|(_, value)| pointer(value)).collect();
        let value_lengths: Vec<_> = parameters.iter().map(|(_, value)| value.len()).collect();
        // SAFETY: every pointer comes with its length and outlives the call; the library copies the texts.
        unsafe {
            function(
                self.handle(),
                sql.as_ptr().cast(),
                sql.len(),
                format.as_ptr().cast(),
                format.len(),
                names.as_ptr(),
                name_lengths.as_ptr(),
                values.as_ptr(),
                value_lengths.as_ptr(),
                parameters.len(),
            )
        }
    }

    /// Runs a statement to its end; the whole result is in memory.
    pub(super) fn query(&mut self, sql: &str, format: &str, parameters: &Parameters) -> QueryResult<'_> {
        let handle = self.call(self.chdb.query, sql, format, parameters);
        QueryResult { chdb: self.chdb, handle, _connection: PhantomData }
    }

    /// Starts a SELECT whose result is fetched piece by piece. The engine refuses other statements without running them.
    pub(super) fn stream(&mut self, sql: &str, format: &str, parameters: &Parameters) -> Result<Stream<'_>, String> {
        let handle = self.call(self.chdb.stream, sql, format, parameters);
        let stream = Stream { handle, connection: self };
        // SAFETY: `handle` is the live stream handle (or NULL, which the library answers with NULL).
        match Chdb::text(unsafe { (stream.connection.chdb.error)(handle) }) {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }

    /// Starts an INSERT whose rows are appended in `format`. `sql` ends before its FORMAT or VALUES.
    pub(super) fn insert(&mut self, sql: &str, format: &str) -> Result<InsertStream<'_>, String> {
        // SAFETY: both texts come with their lengths and outlive the call.
        let handle = unsafe {
            (self.chdb.insert)(self.handle(), sql.as_ptr().cast(), sql.len(), format.as_ptr().cast(), format.len())
        };
        let stream = InsertStream { handle, connection: self };
        match stream.error() {
            Some(error) => Err(error),
            None => Ok(stream),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the slot is live, and no result or stream of this connection exists any more (they borrow it).
        unsafe { (self.chdb.close)(self.slot.as_ptr()) };
    }
}

/// One result, or one piece of a stream.
pub(super) struct QueryResult<'a> {
    chdb: &'static Chdb,
    handle: Handle,
    _connection: PhantomData<&'a mut Connection>,
}

impl QueryResult<'_> {
    /// The engine's error text, if the statement failed.
    pub(super) fn error(&self) -> Option<String> {
        // SAFETY: the handle is live until drop.
        Chdb::text(unsafe { (self.chdb.error)(self.handle) })
    }

    /// The result's bytes in the format asked for.
    pub(super) fn data(&self) -> &[u8] {
        // SAFETY: as above.
        let (pointer, length) = unsafe { ((self.chdb.buffer)(self.handle), (self.chdb.length)(self.handle)) };
        if pointer.is_null() || length == 0 {
            return &[];
        }
        // SAFETY: the library guarantees `length` readable bytes that live as long as the handle, which `self` owns.
        unsafe { std::slice::from_raw_parts(pointer, length) }
    }

    /// What the statement has done so far; of a stream's piece: since the piece before.
    pub(super) fn counts(&self) -> Counts {
        let chdb = self.chdb;
        // SAFETY: the handle is live until drop.
        unsafe {
            Counts {
                rows: (chdb.rows)(self.handle),
                bytes: (chdb.bytes)(self.handle),
                read_rows: (chdb.storage_rows)(self.handle),
                read_bytes: (chdb.storage_bytes)(self.handle),
                written_rows: (chdb.rows_written)(self.handle),
                written_bytes: (chdb.bytes_written)(self.handle),
                rows_to_read: 0,
            }
        }
    }
}

impl Drop for QueryResult<'_> {
    fn drop(&mut self) {
        // SAFETY: destroyed once, here; the library accepts NULL.
        unsafe { (self.chdb.destroy_result)(self.handle) };
    }
}

/// A running SELECT. Dropping it cancels what is left.
pub(super) struct Stream<'a> {
    handle: Handle,
    connection: &'a mut Connection,
}

impl Stream<'_> {
    /// The next piece; one without data and error is the end.
    pub(super) fn fetch(&mut self) -> QueryResult<'_> {
        let chdb = self.connection.chdb;
        // SAFETY: both handles are live; `&mut self` keeps the calls one at a time.
        let handle = unsafe { (chdb.fetch)(self.connection.handle(), self.handle) };
        QueryResult { chdb, handle, _connection: PhantomData }
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        let chdb = self.connection.chdb;
        // SAFETY: cancelling a finished stream does nothing; the handle is destroyed once, here.
        unsafe {
            (chdb.cancel_stream)(self.connection.handle(), self.handle);
            (chdb.destroy_result)(self.handle);
        }
    }
}

/// A running INSERT. Dropping it without [`InsertStream::finish`] cancels it.
pub(super) struct InsertStream<'a> {
    handle: Handle,
    connection: &'a mut Connection,
}

impl InsertStream<'_> {
    fn error(&self) -> Option<String> {
        // SAFETY: the handle is live until drop.
        Chdb::text(unsafe { (self.connection.chdb.insert_error)(self.handle) })
    }

    /// Hands over bytes of the insert's format; waits while the engine is behind. `false` when the insert has failed:
    /// [`InsertStream::finish`] then says why.
    pub(super) fn append(&mut self, bytes: &[u8]) -> bool {
        // SAFETY: the library copies `bytes` before it returns.
        unsafe { (self.connection.chdb.append)(self.handle, bytes.as_ptr().cast(), bytes.len()) == 0 }
    }

    /// Ends the data and waits for the engine's verdict.
    pub(super) fn finish(self) -> Result<Counts, String> {
        let chdb = self.connection.chdb;
        // SAFETY: the handle is live; the result handle is owned by the wrapper.
        let result = QueryResult { chdb, handle: unsafe { (chdb.insert_done)(self.handle) }, _connection: PhantomData };
        result.error().map_or_else(|| Ok(result.counts()), Err)
    }
}

impl Drop for InsertStream<'_> {
    fn drop(&mut self) {
        let chdb = self.connection.chdb;
        // SAFETY: cancelling does nothing after `finish`; the handle is destroyed once, here.
        unsafe {
            (chdb.insert_cancel)(self.handle);
            (chdb.insert_destroy)(self.handle);
        }
    }
}
