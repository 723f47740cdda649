//! argv → cli → exit code, nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    nmem::cli::main(std::env::args_os().skip(1).collect())
}
