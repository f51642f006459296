//! PRELOGIN (MS-TDS 2.2.6.5): option table, then option data; negotiates encryption.

use super::WireError;
use super::reader::Reader;

/// Largest PRELOGIN message that is read, in bytes.
pub(crate) const MAX_PRELOGIN_BYTES: usize = 4096;

const VERSION: u8 = 0x00;
const ENCRYPTION: u8 = 0x01;
const INSTANCE: u8 = 0x02;
const THREAD_ID: u8 = 0x03;
const MARS: u8 = 0x04;
const FED_AUTH_REQUIRED: u8 = 0x06;
const TERMINATOR: u8 = 0xFF;

/// What the server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Encryption {
    /// Every connection is encrypted as a whole; a client that cannot is refused.
    #[value(alias = "on")]
    Required,
    /// As the client asks: the whole connection, or only its login packet.
    Off,
    /// No TLS at all, as a server without certificate support; passwords travel in clear.
    NotSupported,
}

/// ENCRYPTION option values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncryptionOption {
    Off,
    On,
    NotSupported,
    Required,
}

impl EncryptionOption {
    fn from_code(code: u8) -> Result<Self, WireError> {
        // Bit 0x80 announces a client certificate, which is not asked for and so does no harm.
        Ok(match code & 0x7F {
            0 => Self::Off,
            1 => Self::On,
            2 => Self::NotSupported,
            3 => Self::Required,
            _ => return Err(WireError::Malformed("PRELOGIN encryption option")),
        })
    }

    fn code(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::On => 1,
            Self::NotSupported => 2,
            Self::Required => 3,
        }
    }
}

/// What is encrypted after the negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Nothing.
    Plain,
    /// The LOGIN7 message alone.
    LoginOnly,
    /// Everything.
    Whole,
    /// The two cannot talk: the server ends the connection after its answer.
    Refused,
}

/// The table of MS-TDS 2.2.6.5: (server, client) to (answer, what follows).
pub(crate) fn negotiate(server: Encryption, client: EncryptionOption) -> (EncryptionOption, Scope) {
    use EncryptionOption as Client;
    match (server, client) {
        (Encryption::NotSupported, Client::Off | Client::NotSupported) => (Client::NotSupported, Scope::Plain),
        (Encryption::NotSupported, Client::On | Client::Required) => (Client::NotSupported, Scope::Refused),
        (_, Client::On | Client::Required) => (Client::On, Scope::Whole),
        (Encryption::Required, Client::Off) => (Client::Required, Scope::Whole),
        (Encryption::Required, Client::NotSupported) => (Client::Required, Scope::Refused),
        (Encryption::Off, Client::Off) => (Client::Off, Scope::LoginOnly),
        (Encryption::Off, Client::NotSupported) => (Client::NotSupported, Scope::Plain),
    }
}

/// The options of a client that matter to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientPrelogin {
    pub(crate) encryption: EncryptionOption,
    /// FEDAUTHREQUIRED was sent; the answer must then carry the option.
    pub(crate) asks_fed_auth: bool,
}

/// Parses a client's PRELOGIN; unknown options are skipped, as the specification demands.
pub(crate) fn parse(message: &[u8]) -> Result<ClientPrelogin, WireError> {
    let mut table = Reader::new(message);
    let mut client = ClientPrelogin { encryption: EncryptionOption::NotSupported, asks_fed_auth: false };
    loop {
        let option = table.u8()?;
        if option == TERMINATOR {
            return Ok(client);
        }
        let offset = usize::from(table.u16_be()?);
        let length = usize::from(table.u16_be()?);
        let end = offset.checked_add(length).filter(|end| *end <= message.len()).ok_or(WireError::Truncated)?;
        let data = &message[offset..end];
        match option {
            ENCRYPTION => {
                let code = data.first().ok_or(WireError::Malformed("PRELOGIN encryption option"))?;
                client.encryption = EncryptionOption::from_code(*code)?;
            }
            FED_AUTH_REQUIRED => client.asks_fed_auth = data.first() == Some(&1),
            VERSION | INSTANCE | THREAD_ID | MARS => {}
            _ => {}
        }
    }
}

/// The server's PRELOGIN payload. MARS is never offered.
pub(crate) fn response(encryption: EncryptionOption, asks_fed_auth: bool) -> Vec<u8> {
    let [major, minor, build_high, build_low] = super::SERVER_VERSION;
    let mut options: Vec<(u8, Vec<u8>)> = vec![
        (VERSION, vec![major, minor, build_high, build_low, 0, 0]),
        (ENCRYPTION, vec![encryption.code()]),
        (INSTANCE, vec![0]),
        (THREAD_ID, Vec::new()),
        (MARS, vec![0]),
    ];
    if asks_fed_auth {
        options.push((FED_AUTH_REQUIRED, vec![0]));
    }
    let mut offset = options.len() * 5 + 1;
    let mut out = Vec::new();
    for (option, data) in &options {
        out.push(*option);
        out.extend_from_slice(&(offset as u16).to_be_bytes());
        out.extend_from_slice(&(data.len() as u16).to_be_bytes());
        offset += data.len();
    }
    out.push(TERMINATOR);
    options.iter().for_each(|(_, data)| out.extend_from_slice(data));
    out
}
