#pragma once
// Self-signed certificates made by a test, as files of its own.

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace candor::testing {

struct CertificateOptions {
  std::string name = "localhost";
  long begins_s = -3600;  // from now
  long ends_s = 3600;
  std::string passphrase{};  // of the key; "": none
};

// cert.pem and key.pem in `folder`, of a fresh P-256 key.
inline void write_certificate(const std::filesystem::path& folder, const CertificateOptions& options = {}) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> cert(X509_new(), X509_free);
  ASSERT_TRUE(key && cert);
  X509_set_version(cert.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), options.begins_s);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), options.ends_s);
  X509_set_pubkey(cert.get(), key.get());
  X509_NAME* const name = X509_get_subject_name(cert.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(options.name.c_str()), -1,
                             -1, 0);
  X509_set_issuer_name(cert.get(), name);
  ASSERT_GT(X509_sign(cert.get(), key.get(), EVP_sha256()), 0);
  const auto open = [&folder](const char* file) {
    return std::unique_ptr<FILE, int (*)(FILE*)>(std::fopen((folder / file).c_str(), "w"), std::fclose);
  };
  ASSERT_EQ(PEM_write_X509(open("cert.pem").get(), cert.get()), 1);
  const bool is_locked = !options.passphrase.empty();
  ASSERT_EQ(PEM_write_PrivateKey(open("key.pem").get(), key.get(), is_locked ? EVP_aes_128_cbc() : nullptr,
                                 reinterpret_cast<const unsigned char*>(options.passphrase.data()),
                                 static_cast<int>(options.passphrase.size()), nullptr, nullptr),
            1);
}

}  // namespace candor::testing
