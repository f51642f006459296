//! A TCP forwarder: another address for a server, or another server behind the same address for each connection.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// Forwards the n-th connection to the n-th of `servers`, further ones to the last, until the process ends. Returns
/// where it listens, which is `listen` with its port filled in.
///
/// # Errors
/// The address cannot be listened on.
pub fn start(listen: SocketAddr, servers: Vec<SocketAddr>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(listen)?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let (Ok(client), Some(server)) = (client, servers.get(number).or(servers.last())) else { return };
            // A server that is gone is seen by the client as the end of its connection.
            let Ok(server) = TcpStream::connect(server) else { continue };
            let (Ok(client_read), Ok(server_read)) = (client.try_clone(), server.try_clone()) else { continue };
            thread::spawn(move || pump(client_read, server));
            thread::spawn(move || pump(server_read, client));
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
