//! Storage, against real servers and such that misbehave.

mod contract;
mod real_kerberos;
mod sftp;
mod stub;
mod suite;
mod trouble;
mod web_answers;
