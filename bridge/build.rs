//! Links libjpeg-turbo (Debian: libturbojpeg0-dev), the static library, into the crate: a helper finds no other.

use std::env;
use std::path::Path;
use std::process::Command;

const ARCHIVE: &str = "libturbojpeg.a";

/// Where the compiler that links for the target finds it.
fn folder_of_archive() -> Option<String> {
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into());
    let output = Command::new(linker).arg(format!("-print-file-name={ARCHIVE}")).output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(path.trim());
    if path.is_file() {
        return path.canonicalize().ok()?.parent()?.to_str().map(String::from);
    }
    None
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CANDOR_TURBOJPEG_DIR");
    let folder = env::var("CANDOR_TURBOJPEG_DIR").ok().or_else(folder_of_archive);
    let Some(folder) = folder else {
        eprintln!("{ARCHIVE} is not installed: sh scripts/setup.sh, or name its folder in CANDOR_TURBOJPEG_DIR");
        std::process::exit(1);
    };
    println!("cargo:rustc-link-search=native={folder}");
    println!("cargo:rustc-link-lib=static=turbojpeg");
}
