//! A TCP forwarder: another address for a server, or another server behind the same address for each connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What a forwarder of [`start_cutting`] counts and where it cuts.
#[derive(Debug)]
pub struct Cut {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cut_bytes: AtomicU64,
    most_bytes: AtomicU64,
    cuts: AtomicU64,
}

impl Cut {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts each connection, in both directions, as soon as `bytes` bytes of the server went to its client.
    pub fn after(&self, bytes: u64) {
        self.shared.cut_bytes.store(bytes, Ordering::Release);
    }

    /// Bytes of the server that the fullest connection brought to its client so far.
    #[must_use]
    pub fn most_bytes(&self) -> u64 {
        self.shared.most_bytes.load(Ordering::Acquire)
    }

    /// How many connections were cut so far.
    #[must_use]
    pub fn cuts(&self) -> u64 {
        self.shared.cuts.load(Ordering::Acquire)
    }
}

/// Forwards every connection to `server`, counts what goes to the clients, and cuts where [`Cut::after`] says; at first
/// nowhere. It works until the process ends.
///
/// # Errors
/// The address cannot be listened on.
pub fn start_cutting(listen: SocketAddr, server: SocketAddr) -> io::Result<Cut> {
    let shared = Arc::new(Shared { cut_bytes: u64::MAX.into(), most_bytes: 0.into(), cuts: 0.into() });
    let counted = Arc::clone(&shared);
    let address = serve(listen, vec![server], move |from, to| pump_until_cut(from, to, &counted))?;
    Ok(Cut { address, shared })
}

/// Forwards the n-th connection to the n-th of `servers`, further ones to the last, until the process ends. Returns
/// where it listens, which is `listen` with its port filled in.
///
/// # Errors
/// The address cannot be listened on.
pub fn start(listen: SocketAddr, servers: Vec<SocketAddr>) -> io::Result<SocketAddr> {
    serve(listen, servers, pump)
}

/// Forwards; `to_client` copies what the servers send.
fn serve<F>(listen: SocketAddr, servers: Vec<SocketAddr>, to_client: F) -> io::Result<SocketAddr>
where
    F: Fn(TcpStream, TcpStream) + Clone + Send + 'static,
{
    let listener = TcpListener::bind(listen)?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (Ok(client), Some(server)) = (client, servers.get(number).or(servers.last())) else { return };
            // A server that is gone is seen by the client as the end of its connection.
            let Ok(server) = TcpStream::connect(server) else { continue };
            let (Ok(client_read), Ok(server_read)) = (client.try_clone(), server.try_clone()) else { continue };
            thread::spawn(move || pump(client_read, server));
            let to_client = to_client.clone();
            thread::spawn(move || to_client(server_read, client));
        }
    });
    Ok(address)
}

/// Copies until one side ends, then ends the other.
fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 65_536];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    // Either may be closed already.
    let _ = to.shutdown(Shutdown::Both);
}

/// Copies until one side ends or the cut is reached, then ends both.
fn pump_until_cut(mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    let mut buffer = [0; 4096];
    let mut sent = 0_u64;
    while let Ok(read) = from.read(&mut buffer) {
        let left = shared.cut_bytes.load(Ordering::Acquire).saturating_sub(sent);
        let now = usize::try_from(left).map_or(read, |left| left.min(read));
        if read == 0 || to.write_all(&buffer[..now]).is_err() {
            break;
        }
        sent += now as u64;
        shared.most_bytes.fetch_max(sent, Ordering::AcqRel);
        if now < read || left == now as u64 {
            shared.cuts.fetch_add(1, Ordering::AcqRel);
            break;
        }
    }
    // Either may be closed already.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
