//! Writes the built-in domains as JSON, and links the release binary.
//!
//! The domains: a session's start and a turn's end read one, and JSON takes a fraction of TOML's time (ADR/0007).
//!
//! Links the release binary statically where this machine can: half of what an empty process costs is the dynamic
//! linker, and a hook is started hundreds of times an hour (ADR/0007 has the figures).
//!
//! `-C target-feature=+crt-static` would need `--target`, which moves the binary out of `target/release`. So the linker
//! is given scripts that stand in for the three shared libraries and name the archives instead. A probe program that
//! unwinds and starts a thread is linked the same way and run; where it fails (no static C library is installed, say),
//! the binary is linked as usual. `NMEM_LINK=dynamic` asks for that.
//!
//! The same arguments put the functions that hooks call next to each other (`hooks/layout.ld`), unless
//! `NMEM_LINK=unordered`.

#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a build script is spoken to through these")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// Shared library → the linker script that stands in for it.
const SCRIPTS: [(&str, &str); 3] = [
    ("libc.so", "GROUP ( -l:libgcc_eh.a -l:libgcc.a -l:libc.a )\n"),
    ("libgcc_s.so", "GROUP ( -l:libgcc_eh.a -l:libgcc.a -l:libc.a )\n"),
    ("libm.so", "INPUT ( -l:libm.a )\n"),
];

/// Hooks catch panics, so unwinding must work; distilling starts threads.
const PROBE: &str = "fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| panic!(\"probe\")).is_err();
    let joined = std::thread::spawn(|| (2.0f64 + std::env::args().count() as f64).log2()).join().is_ok();
    std::process::exit(if caught && joined { 0 } else { 1 });
}
";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=NMEM_LINK");
    println!("cargo::rerun-if-changed=hooks/layout.ld");
    write_domains().expect("the presets as JSON");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|v| v == value);
    let here = env::var_os("HOST") == env::var_os("TARGET");
    let linux = is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu");
    if !here || !linux || !is("PROFILE", "release") || is("NMEM_LINK", "dynamic") {
        return;
    }
    let Some(out) = env::var_os("OUT_DIR").map(PathBuf::from) else { return };
    let folder = out.join("static");
    let layout = Path::new("hooks/layout.ld").canonicalize().map(|script| format!("-Wl,-T,{}", script.display()));
    let mut arguments = vec![format!("-L{}", folder.display()), "-static".to_string(), "-no-pie".to_string()];
    arguments.extend(layout.ok().filter(|_| !is("NMEM_LINK", "unordered")));
    if write_scripts(&folder).is_ok() && probe(&out, &arguments).is_ok_and(|works| works) {
        for argument in arguments {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

fn write_domains() -> io::Result<()> {
    println!("cargo::rerun-if-changed=presets");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for preset in fs::read_dir("presets")? {
        let path = preset?.path();
        let domain: toml::Table = toml::from_str(&fs::read_to_string(&path)?).map_err(io::Error::other)?;
        let json = serde_json::to_string(&domain)?;
        fs::write(out.join(path.with_extension("json").file_name().unwrap_or_default()), json)?;
    }
    Ok(())
}

fn write_scripts(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    SCRIPTS.iter().try_for_each(|(name, script)| fs::write(folder.join(name), script))
}

/// Links and runs the probe.
fn probe(out: &Path, arguments: &[String]) -> io::Result<bool> {
    fs::write(out.join("probe.rs"), PROBE)?;
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition=2021", "-O", "-o", "probe", "probe.rs"]).current_dir(out);
    rustc.args(arguments.iter().map(|a| format!("-Clink-arg={a}")));
    let linked = rustc.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success();
    Ok(linked && Command::new(out.join("probe")).status()?.success())
}
