# Formula of Homebrew on Linux: `brew install ./candor.rb`. Filled in by scripts/make_packages.py.
class @CLASS@ < Formula
  desc "LLM inference engine that gives one answer and hides nothing"
  homepage "https://candor.invalid"
  url "@URL@"
  sha256 "@SHA256@"
  version "@VERSION@"
  license "Apache-2.0"

  depends_on :linux
  depends_on arch: :@BREW_CPU@

  def install
    bin.install "bin/candor"
    include.install "include/candor"
    lib.install Dir["lib/libcandor.so*"]
    (lib/"cmake").install "lib/cmake/candor"
    (share/"pkgconfig").install "share/pkgconfig/candor.pc"
    (share/"candor").install "share/candor/models"
    man1.install "share/man/man1/candor.1.gz"
    bash_completion.install "share/bash-completion/completions/candor"
    zsh_completion.install "share/zsh/site-functions/_candor"
    fish_completion.install "share/fish/vendor_completions.d/candor.fish"
    doc.install Dir["share/doc/candor/*"]
  end

  service do
    run [opt_bin/"candor", "serve"]
    keep_alive true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/candor --version")
  end
end
