//! A server of mail for tests: a thread on a port of this machine, which speaks to one client after the other.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use kelos_tls::pki_types::PrivateKeyDer;
use kelos_tls::pki_types::pem::PemObject;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The behaviour of the server with one client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// It takes everything.
    Well,
    /// It answers a command with this line.
    Says(&'static str, &'static str),
    /// It dies at a command.
    DiesAt(&'static str),
}

/// Its end of the protection.
pub(super) enum Encryption {
    None,
    AtOnce(Arc<ServerConfig>),
    OnRequest(Arc<ServerConfig>),
}

pub(super) struct Server {
    pub(super) port: u16,
    /// All that clients said, line by line.
    heard: Arc<Mutex<Vec<String>>>,
    /// The mails that it took.
    taken: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(super) fn start(encryption: Encryption, moods: &[Mood]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heard, taken) = (Arc::new(Mutex::default()), Arc::new(Mutex::default()));
        let (all, mails, mut moods) = (heard.clone(), taken.clone(), VecDeque::from(moods.to_vec()));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mood = moods.pop_front().unwrap_or(Mood::Well);
                // A client that is gone gets no answer.
                let _ = serve(stream, &encryption, Talk { mood, heard: &all, taken: &mails });
            }
        });
        Server { port, heard, taken }
    }

    pub(super) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub(super) fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }
}

/// A certificate for `localhost`, which is its own authority, in PEM, and the configuration of the server that has it.
pub(super) fn certificate() -> (String, Arc<ServerConfig>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let named = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let own = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![named.der().clone()], own).unwrap();
    (named.pem(), Arc::new(config))
}

fn encrypted(stream: TcpStream, config: &Arc<ServerConfig>) -> StreamOwned<ServerConnection, TcpStream> {
    StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
}

fn serve(mut stream: TcpStream, encryption: &Encryption, talk: Talk<'_>) -> std::io::Result<()> {
    match encryption {
        Encryption::None => {
            stream.write_all(b"220 mail.example.com\r\n")?;
            talk.follow(BufReader::new(stream), false).map(drop)
        }
        Encryption::AtOnce(config) => {
            let mut stream = encrypted(stream, config);
            stream.write_all(b"220 mail.example.com\r\n")?;
            talk.follow(BufReader::new(stream), false).map(drop)
        }
        Encryption::OnRequest(config) => {
            stream.write_all(b"220 mail.example.com\r\n")?;
            match talk.follow(BufReader::new(stream), true)? {
                Some(reader) => talk.follow(BufReader::new(encrypted(reader.into_inner(), config)), false).map(drop),
                None => Ok(()),
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Talk<'a> {
    mood: Mood,
    heard: &'a Mutex<Vec<String>>,
    taken: &'a Mutex<Vec<String>>,
}

impl Talk<'_> {
    /// Answers until the client goes, or is to be encrypted: then the stream is returned.
    fn follow<S: Read + Write>(
        self,
        mut reader: BufReader<S>,
        offers_tls: bool,
    ) -> std::io::Result<Option<BufReader<S>>> {
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let line = line.trim_end().to_owned();
            self.heard.lock().unwrap().push(line.clone());
            let answer = match self.mood {
                Mood::DiesAt(command) if line.starts_with(command) => return Ok(None),
                Mood::Says(command, words) if line.starts_with(command) => words,
                _ if line.starts_with("EHLO") && offers_tls => "250-mail.example.com\r\n250 STARTTLS",
                _ if line.starts_with("EHLO") => "250-mail.example.com\r\n250 AUTH PLAIN",
                _ if line.starts_with("AUTH") => "235 welcome",
                _ if line.starts_with("STARTTLS") => {
                    reader.get_mut().write_all(b"220 go on\r\n")?;
                    return Ok(Some(reader));
                }
                _ if line.starts_with("DATA") => {
                    reader.get_mut().write_all(b"354 go on\r\n")?;
                    let mail = text(&mut reader)?;
                    self.heard.lock().unwrap().push(".".to_owned());
                    match self.mood {
                        Mood::DiesAt(".") => return Ok(None),
                        Mood::Says(".", words) => words,
                        _ => {
                            self.taken.lock().unwrap().push(mail);
                            "250 taken"
                        }
                    }
                }
                _ if line.starts_with("QUIT") => "221 bye",
                _ => "250 well",
            };
            reader.get_mut().write_all(format!("{answer}\r\n").as_bytes())?;
        }
    }
}

/// The lines up to a single dot.
fn text(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut text = String::new();
    while !text.ends_with("\r\n.\r\n") && reader.read_line(&mut text)? > 0 {}
    Ok(text)
}
