//! A PostgreSQL of its own for a test: on a socket in a temporary folder, gone with the test.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Programs of Debian's packages are not on PATH.
const FOLDERS: [&str; 5] = [
    "/usr/lib/postgresql/18/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/local/pgsql/bin",
];

pub struct Postgres {
    folder: PathBuf,
    programs: PathBuf,
    /// PostgreSQL does not run as root.
    as_user: Option<&'static str>,
}

fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let all = FOLDERS.iter().map(PathBuf::from).chain(std::env::split_paths(&path));
    all.into_iter().find(|folder| folder.join("initdb").exists() && folder.join("pg_ctl").exists())
}

fn user() -> Option<Option<&'static str>> {
    let id = Command::new("id").arg("-u").output().ok()?;
    if String::from_utf8_lossy(&id.stdout).trim() != "0" {
        return Some(None);
    }
    let exists = |name: &&str| Command::new("id").arg(name).output().is_ok_and(|out| out.status.success());
    ["postgres", "nobody"].into_iter().find(exists).map(Some)
}

impl Postgres {
    /// Starts one; `None`, said loudly, where there is no PostgreSQL.
    pub fn start() -> Option<Postgres> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (Some(programs), Some(as_user)) = (programs(), user()) else {
            eprintln!("PASSED OVER: this test needs PostgreSQL (Debian: apt-get install postgresql)");
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("nmem-pg-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let server = Postgres { folder, programs, as_user };
        let data = server.folder.join("data").display().to_string();
        server.must("initdb", &["-D", &data, "-A", "trust", "-U", "postgres", "--no-sync"]);
        let options = format!("-k {} -c listen_addresses='' -c fsync=off", server.folder.display());
        let log = server.folder.join("log").display().to_string();
        server.must("pg_ctl", &["-D", &data, "-o", &options, "-l", &log, "-w", "start"]);
        server.psql("postgres", "CREATE DATABASE rad");
        Some(server)
    }

    fn run(&self, program: &str, args: &[&str]) -> Output {
        let path = self.programs.join(program);
        let mut command = match self.as_user {
            None => Command::new(path),
            Some(user) => {
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--"]).arg(path);
                command
            }
        };
        // A server keeps what it inherits: no pipes.
        let out = self.folder.join(format!("out-{program}"));
        let file = fs::File::create(&out).unwrap();
        let status = command.args(args).current_dir("/").stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        Output { status, stdout: fs::read(&out).unwrap(), stderr: Vec::new() }
    }

    fn must(&self, program: &str, args: &[&str]) -> String {
        let out = self.run(program, args);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{program} {args:?}: {text}");
        text
    }

    fn host(&self) -> String {
        self.folder.display().to_string()
    }

    /// Value of `RAD_DATABASE_URL`.
    pub fn url(&self) -> String {
        format!("postgresql://postgres@{}/rad", self.host().replace('/', "%2F"))
    }

    /// The same for a role with a login and no rights but those to create tables.
    pub fn url_of(&self, role: &str) -> String {
        self.sql(&format!(
            "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE rad TO {role}; GRANT CREATE ON SCHEMA public TO {role}"
        ));
        self.url().replace("//postgres@", &format!("//{role}@"))
    }

    /// Runs SQL; returns rows as text, columns separated by `|`.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        self.sql_in(database, "postgres", sql)
    }

    /// Runs SQL as a role.
    pub fn sql_as(&self, role: &str, sql: &str) -> String {
        self.sql_in("rad", role, sql)
    }

    fn sql_in(&self, database: &str, role: &str, sql: &str) -> String {
        self.must("psql", &["-h", &self.host(), "-U", role, "-d", database, "-v", "ON_ERROR_STOP=1", "-Atqc", sql])
            .trim()
            .to_string()
    }

    pub fn sql(&self, sql: &str) -> String {
        self.psql("rad", sql)
    }

    /// Everything in the database as `pg_dump` writes it.
    pub fn dump(&self) -> String {
        self.must("pg_dump", &["-h", &self.host(), "-U", "postgres", "rad"])
    }

    pub fn stop(&self) {
        let data = self.folder.join("data").display().to_string();
        let _ = self.run("pg_ctl", &["-D", &data, "-m", "immediate", "stop"]);
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
