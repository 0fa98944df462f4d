//! Logging in to a server from the command line.

use crate::support::{Folder, Said, Server, kelos};

#[test]
fn a_password_may_come_from_a_file() {
    let folder = Folder::with(&[
        ("workflows/a.js", "kelos.workflow(\"a\", {schedule: \"daily\", shell: \"true\"});"),
        ("password", "correct horse battery staple\n"),
        ("wrong", "incorrect horse\n"),
    ]);
    let server = Server::start(folder.path(), &["up", "--port", "0", "--auth"], "Stop with Ctrl-C");
    folder.run(&["user", "add", "anna", "--role", "view", "--password-file", "password"]).ok();
    let login = |file: &str| {
        let mut command = kelos(&["login", server.address(), "--user", "anna", "--password-file", file]);
        command.current_dir(folder.path()).env("XDG_CONFIG_HOME", folder.path().join("config"));
        Said::of(command.output().expect("kelos"))
    };
    let refused = login("wrong");
    assert!(refused.code != 0 && !refused.err.contains("incorrect horse"), "{refused:?}");
    assert!(login("password").ok().contains(" as anna (view); the token is in "));
    assert!(server.stop().success());
}
