#include "serve/http/tls_identity.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <ctime>
#include <fstream>
#include <string_view>
#include <system_error>

namespace candor::http {
namespace {

namespace ssl = boost::asio::ssl;
constexpr size_t kMaxPemBytes = 1u << 20;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};

// A text that leaves nothing of a key behind.
struct Secret {
  Secret() = default;
  Secret(Secret&&) = default;
  ~Secret() { OPENSSL_cleanse(text.data(), text.size()); }
  std::string text;
};

// Files that are opened again at every reload: a pipe could be read only once.
Result<Secret> read_pem(const std::filesystem::path& path, std::string_view what, std::string_view option) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return fail(ErrorKind::kIo,
                fmt::format("{}: the {} {} {}", option, what, path.string(),
                            std::filesystem::exists(path, ignored) ? "is not a file" : "does not exist"));
  }
  std::ifstream file(path, std::ios::binary);
  Secret read;
  read.text.resize(kMaxPemBytes + 1);
  if (file) file.read(read.text.data(), static_cast<std::streamsize>(read.text.size()));
  if (file.bad() || (!file && !file.eof())) {
    return fail(ErrorKind::kIo,
                fmt::format("{}: the {} {} cannot be read; may this user read it?", option, what, path.string()));
  }
  const auto n_bytes = static_cast<size_t>(file.gcount());
  if (n_bytes > kMaxPemBytes)
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: the {} {} is larger than 1 MiB", option, what, path.string()));
  read.text.resize(n_bytes);
  return read;
}

// Why OpenSSL's last call failed, in its words.
std::string last_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "it is not understood" : reason;
}

// Instead of a question on the terminal.
int give_no_passphrase(char*, int, int, void* was_asked) {
  *static_cast<bool*>(was_asked) = true;
  return 0;
}

int choose_http_1_1(SSL*, const unsigned char** chosen, unsigned char* n_chosen, const unsigned char* offered,
                    unsigned int n_offered, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(&found, n_chosen, kOurs, sizeof kOurs - 1, offered, n_offered);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::string text_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "a time that cannot be read";
  char text[32];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return {text, n};
}

}  // namespace

TlsIdentity::TlsIdentity() : context_(std::make_unique<ssl::context>(ssl::context::tls_server)) {
  SSL_CTX* const handle = context_->native_handle();
  SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION);
  SSL_CTX_set_options(handle, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(handle, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(handle, choose_http_1_1, nullptr);
}

TlsIdentity::~TlsIdentity() = default;

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(const TlsFiles& files) {
  std::shared_ptr<TlsIdentity> identity(new TlsIdentity());
  CANDOR_TRY(identity->take_certificate(files));
  CANDOR_TRY(identity->take_key(files));
  identity->describe(files.cert);
  return identity;
}

Result<void> TlsIdentity::take_certificate(const TlsFiles& files) {
  CANDOR_ASSIGN(const Secret pem, read_pem(files.cert, "certificate", "--tls-cert"));
  boost::system::error_code error;
  ERR_clear_error();
  context_->use_certificate_chain(boost::asio::buffer(pem.text), error);
  if (!error && SSL_CTX_get0_certificate(context_->native_handle()) != nullptr) return {};
  const char* reason = ERR_reason_error_string(static_cast<unsigned long>(error.value()));
  ERR_clear_error();
  return fail(ErrorKind::kInvalidInput,
              fmt::format("--tls-cert: {} holds no certificate that can be used, expected PEM (-----BEGIN CERTIFICATE"
                          "-----): {}",
                          files.cert.string(), reason == nullptr ? error.message() : reason));
}

Result<void> TlsIdentity::take_key(const TlsFiles& files) {
  CANDOR_ASSIGN(const Secret pem, read_pem(files.key, "key", "--tls-key"));
  const std::unique_ptr<BIO, FreeBio> bio(BIO_new_mem_buf(pem.text.data(), static_cast<int>(pem.text.size())));
  if (!bio) return fail(ErrorKind::kOutOfMemory, "--tls-key: memory ran out");
  bool was_asked = false;
  ERR_clear_error();
  const std::unique_ptr<EVP_PKEY, FreeKey> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, give_no_passphrase, &was_asked));
  const std::string name = files.key.string();
  if (was_asked) {
    ERR_clear_error();
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("--tls-key: {} is locked with a passphrase, which nobody is there to give; write it without "
                    "one: openssl pkey -in {} -out NEW",
                    name, name));
  }
  if (!key) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--tls-key: {} holds no private key, expected PEM (-----BEGIN PRIVATE KEY-----): {}", name,
                            last_reason()));
  }
  SSL_CTX* const handle = context_->native_handle();
  if (X509_check_private_key(SSL_CTX_get0_certificate(handle), key.get()) != 1) {
    ERR_clear_error();
    return fail(ErrorKind::kInvalidInput,
                fmt::format("--tls-key: {} does not belong to the first certificate of {}", name, files.cert.string()));
  }
  if (SSL_CTX_use_PrivateKey(handle, key.get()) == 1) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("--tls-key: {} cannot be used: {}", name, last_reason()));
}

void TlsIdentity::describe(const std::filesystem::path& cert) {
  const X509* const certificate = SSL_CTX_get0_certificate(context_->native_handle());
  const ASN1_TIME* const begin = X509_get0_notBefore(certificate);
  const ASN1_TIME* const end = X509_get0_notAfter(certificate);
  description_ = fmt::format("certificate {}, valid until {}", cert.string(), text_of(end));
  if (X509_cmp_current_time(end) < 0) {
    warnings_.push_back(
        fmt::format("the certificate {} expired on {}: clients will refuse it", cert.string(), text_of(end)));
  }
  if (X509_cmp_current_time(begin) > 0) {
    warnings_.push_back(fmt::format("the certificate {} is valid only from {} on: clients will refuse it",
                                    cert.string(), text_of(begin)));
  }
}

}  // namespace candor::http
