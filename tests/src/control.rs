//! The breakpoints of `testkit sqlserver` over TCP, one JSON object a line.
//!
//! ```text
//! -> {"set":{"contains":"COMMIT","program":"native-transfer publish","when":"before","action":"hold","nth":1}}
//! <- {"armed":1}
//! <- {"hit":1,"session":57,"program":"native-transfer publish"}        when a session reaches it
//! -> {"release":{"id":1,"then":"go_on"}}
//! <- {"released":true}
//! -> "clear"
//! <- "cleared"
//! ```
//!
//! `when` is `before`, `after` (done, and its answer not sent) or `{"rows":N}`; `action` is `hold` or
//! `drop_connection`; `on` is `statement` or `bulk`; `then` is `go_on` or `drop_connection`.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use servers::sqlserver::control::{Breakpoint, Control, Hit, Then};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// How long a test waits for a moment that must come.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Command {
    Set(Breakpoint),
    Release {
        id: u64,
        #[serde(default)]
        then: Then,
    },
    Clear,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Armed(u64),
    Released(bool),
    Cleared,
    Refused(String),
}

/// Serves breakpoint commands until the runtime ends.
pub async fn serve(listener: TcpListener, control: Arc<Control>) {
    while let Ok((socket, _)) = listener.accept().await {
        let control = Arc::clone(&control);
        tokio::spawn(async move {
            // A test that is gone needs no answer.
            let _ = converse(socket, &control).await;
        });
    }
}

async fn converse(socket: tokio::net::TcpStream, control: &Control) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (read, mut write) = socket.into_split();
    let mut lines = tokio::io::BufReader::new(read).lines();
    let mut hits = control.listen();
    loop {
        let line = tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) => serde_json::to_string(&answer(control, &line))?,
                None => return Ok(()),
            },
            hit = hits.recv() => match hit {
                Some(hit) => serde_json::to_string(&hit)?,
                None => return Ok(()),
            },
        };
        write.write_all(format!("{line}\n").as_bytes()).await?;
    }
}

fn answer(control: &Control, line: &str) -> Answer {
    match serde_json::from_str(line) {
        Ok(Command::Set(breakpoint)) => Answer::Armed(control.set(breakpoint)),
        Ok(Command::Release { id, then }) => Answer::Released(control.release(id, then)),
        Ok(Command::Clear) => {
            control.clear();
            Answer::Cleared
        }
        Err(error) => Answer::Refused(error.to_string()),
    }
}

/// A test's connection to the breakpoints of a server.
#[derive(Debug)]
pub struct Client {
    lines: BufReader<TcpStream>,
    hits: VecDeque<Hit>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Hit(Hit),
    Answer(Answer),
}

impl Client {
    /// Connects to `--control` of a server.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        Ok(Self { lines: BufReader::new(socket), hits: VecDeque::new() })
    }

    /// Arms a breakpoint; returns its id.
    ///
    /// # Errors
    /// The server is gone or refuses the breakpoint.
    pub fn set(&mut self, breakpoint: Breakpoint) -> io::Result<u64> {
        match self.ask(&Command::Set(breakpoint))? {
            Answer::Armed(id) => Ok(id),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// Lets a held session go on.
    ///
    /// # Errors
    /// The server is gone, or no session is held there.
    pub fn release(&mut self, id: u64, then: Then) -> io::Result<()> {
        match self.ask(&Command::Release { id, then })? {
            Answer::Released(true) => Ok(()),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// Disarms what was not reached.
    ///
    /// # Errors
    /// The server is gone.
    pub fn clear(&mut self) -> io::Result<()> {
        match self.ask(&Command::Clear)? {
            Answer::Cleared => Ok(()),
            other => Err(io::Error::other(format!("{other:?}"))),
        }
    }

    /// Waits until a session reaches the breakpoint.
    ///
    /// # Errors
    /// It was not reached in a minute, or the server is gone.
    pub fn wait(&mut self, id: u64) -> io::Result<Hit> {
        let patience = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.hits.iter().position(|hit| hit.hit == id) {
                return self.hits.remove(at).ok_or_else(|| io::Error::other("a hit that was there"));
            }
            let left = patience.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.lines.get_ref().set_read_timeout(Some(left))?;
            let line = self.line();
            self.lines.get_ref().set_read_timeout(None)?;
            match line? {
                Line::Hit(hit) => self.hits.push_back(hit),
                Line::Answer(answer) => return Err(io::Error::other(format!("unasked: {answer:?}"))),
            }
        }
    }

    fn ask(&mut self, command: &Command) -> io::Result<Answer> {
        let line = serde_json::to_string(command)? + "\n";
        self.lines.get_mut().write_all(line.as_bytes())?;
        loop {
            match self.line()? {
                Line::Hit(hit) => self.hits.push_back(hit),
                Line::Answer(answer) => return Ok(answer),
            }
        }
    }

    fn line(&mut self) -> io::Result<Line> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&line)?)
    }
}
