# Expression of Nix: `nix-build -E 'with import <nixpkgs> {}; callPackage ./candor.nix {}'`. Filled in by
# scripts/make_packages.py.
{ lib, stdenv, fetchurl, autoPatchelfHook }:

stdenv.mkDerivation {
  pname = "@NAME@";
  version = "@VERSION@";

  src = fetchurl {
    url = "@URL@";
    sha256 = "@SHA256@";
  };

  nativeBuildInputs = [ autoPatchelfHook ];
  dontConfigure = true;
  dontBuild = true;

  installPhase = ''
    mkdir -p $out
    cp -r bin include lib share $out/
    rm -rf $out/lib/systemd
  '';

  doInstallCheck = true;
  installCheckPhase = "$out/bin/candor --version";

  meta = {
    description = "LLM inference engine that gives one answer and hides nothing";
    license = lib.licenses.asl20;
    mainProgram = "candor";
    platforms = [ "@SYSTEM@" ];
  };
}
