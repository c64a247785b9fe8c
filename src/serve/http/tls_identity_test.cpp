#include "serve/http/tls_identity.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/certificate.h"
#include "support/temp_folder.h"

namespace candor::http {
namespace {

class tls_identity : public ::testing::Test {
 protected:
  TlsFiles files() const { return {.cert = folder_.path() / "cert.pem", .key = folder_.path() / "key.pem"}; }
  static void expect_refused(const TlsFiles& files, const std::vector<std::string>& words) {
    const auto identity = TlsIdentity::load(files);
    ASSERT_FALSE(identity);
    for (const std::string& word : words)
      EXPECT_NE(identity.error().message.find(word), std::string::npos) << word << "\n" << identity.error().message;
    EXPECT_EQ(identity.error().message.find('\n'), std::string::npos) << identity.error().message;
  }

  testing::TempFolder folder_{};
};

TEST_F(tls_identity, a_pair_is_loaded_and_described) {
  testing::write_certificate(folder_.path());
  const auto identity = TlsIdentity::load(files());
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_TRUE((*identity)->warnings().empty());
  EXPECT_NE((*identity)->description().find("cert.pem, valid until 20"), std::string::npos)
      << (*identity)->description();
}

TEST_F(tls_identity, one_that_is_not_valid_today_is_used_with_a_warning) {
  testing::write_certificate(folder_.path(), {.begins_s = -7200, .ends_s = -60});
  const auto late = TlsIdentity::load(files());
  ASSERT_TRUE(late) << late.error().message;
  ASSERT_EQ((*late)->warnings().size(), 1u);
  EXPECT_NE((*late)->warnings()[0].find("expired on 20"), std::string::npos) << (*late)->warnings()[0];
  testing::write_certificate(folder_.path(), {.begins_s = 3600, .ends_s = 7200});
  const auto early = TlsIdentity::load(files());
  ASSERT_TRUE(early) << early.error().message;
  ASSERT_EQ((*early)->warnings().size(), 1u);
  EXPECT_NE((*early)->warnings()[0].find("valid only from 20"), std::string::npos) << (*early)->warnings()[0];
}

TEST_F(tls_identity, what_is_no_pair_is_refused_by_name) {
  const testing::TempFolder other;
  testing::write_certificate(folder_.path());
  testing::write_certificate(other.path());
  const TlsFiles own = files();
  expect_refused({.cert = own.cert, .key = other.path() / "key.pem"}, {"--tls-key", "does not belong", "cert.pem"});
  expect_refused({.cert = own.cert, .key = own.cert}, {"--tls-key", "no private key", "cert.pem"});
  expect_refused({.cert = own.key, .key = own.key}, {"--tls-cert", "no certificate", "key.pem"});
  expect_refused({.cert = own.cert, .key = folder_.path() / "none"}, {"--tls-key", "none", "does not exist"});
  expect_refused({.cert = folder_.path(), .key = own.key}, {"--tls-cert", "is not a file"});
  expect_refused({.cert = "/dev/zero", .key = own.key}, {"--tls-cert", "is not a file"});
  std::ofstream(folder_.path() / "large") << std::string((1u << 20) + 1, '\n');
  expect_refused({.cert = folder_.path() / "large", .key = own.key}, {"--tls-cert", "1 MiB"});
  std::ofstream(folder_.path() / "empty").flush();
  expect_refused({.cert = folder_.path() / "empty", .key = own.key}, {"--tls-cert", "no certificate"});
  expect_refused({.cert = own.cert, .key = folder_.path() / "empty"}, {"--tls-key", "no private key"});
  std::ofstream(own.key) << "-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----\n";
  expect_refused(own, {"--tls-key", "no private key"});
}

TEST_F(tls_identity, a_key_behind_a_passphrase_is_refused_without_asking_for_it) {
  testing::write_certificate(folder_.path(), {.passphrase = "secret"});
  expect_refused(files(), {"--tls-key", "passphrase", "openssl pkey"});
}

}  // namespace
}  // namespace candor::http
