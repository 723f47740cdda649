//! Entry point: passes the arguments to `cli` and exits with its code.

use std::process::ExitCode;

fn main() -> ExitCode {
    nmem::cli::main(std::env::args_os().skip(1).collect())
}
