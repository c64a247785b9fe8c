// Ed25519 (RFC 8032), by OpenSSL, of the JSON that to_json() gives without the signature.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/sha256.h"
#include "candor/verify.h"

namespace candor {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Context = std::unique_ptr<EVP_MD_CTX, Free>;

Error refused(std::string why) {
  return {ErrorKind::kInvalidInput, std::move(why), "signature"};
}

// Never asks anybody for a password.
int no_password(char*, int, int, void*) {
  return -1;
}

Key read_pem(std::string_view pem, EVP_PKEY* (*read)(BIO*, EVP_PKEY**, pem_password_cb*, void*)) {
  if (pem.size() > size_t{1} << 16) return nullptr;
  const std::unique_ptr<BIO, Free> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Key key(bio ? read(bio.get(), nullptr, no_password, nullptr) : nullptr);
  return key && EVP_PKEY_base_id(key.get()) == EVP_PKEY_ED25519 ? std::move(key) : nullptr;
}

std::string signed_text(const Receipt& receipt) {
  Receipt bare = receipt;
  bare.signature.reset();
  return to_json(bare);
}

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Result<void> sign(Receipt& receipt, std::string_view private_key_pem) {
  const Key key = read_pem(private_key_pem, PEM_read_bio_PrivateKey);
  if (!key) {
    return refused(
        "the key is no Ed25519 private key in PEM without a password: `openssl genpkey -algorithm ed25519` "
        "makes one");
  }
  ReceiptSignature signature;
  size_t n_signer = signature.signer.size();
  size_t n_value = signature.value.size();
  const std::string text = signed_text(receipt);
  const Context context(EVP_MD_CTX_new());
  const bool is_signed =
      context && EVP_PKEY_get_raw_public_key(key.get(), signature.signer.data(), &n_signer) == 1 &&
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestSign(context.get(), signature.value.data(), &n_value, bytes_of(text), text.size()) == 1;
  if (!is_signed) return Error{ErrorKind::kInternal, "the receipt could not be signed", "signature"};
  receipt.signature = signature;
  return {};
}

Result<void> check_signature(const Receipt& receipt) {
  if (!receipt.signature) return {};
  const ReceiptSignature& signature = *receipt.signature;
  const Key key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, signature.signer.data(), signature.signer.size()));
  const Context context(EVP_MD_CTX_new());
  const std::string text = signed_text(receipt);
  const bool fits =
      key && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), signature.value.data(), signature.value.size(), bytes_of(text), text.size()) == 1;
  if (fits) return {};
  return refused("the signature does not fit: the receipt is not as its signer left it");
}

Result<void> check_signature(const Receipt& receipt, std::string_view key_pem) {
  Key key = read_pem(key_pem, PEM_read_bio_PUBKEY);
  if (!key) key = read_pem(key_pem, PEM_read_bio_PrivateKey);
  if (!key) {
    return refused("the signer's key is no Ed25519 key in PEM: `openssl pkey -in KEY -pubout` writes the public one");
  }
  if (!receipt.signature) return refused("the receipt is not signed");
  std::array<std::uint8_t, 32> signer{};
  size_t n_signer = signer.size();
  EVP_PKEY_get_raw_public_key(key.get(), signer.data(), &n_signer);
  if (signer != receipt.signature->signer)
    return refused("the receipt is signed by another key, " + to_hex(receipt.signature->signer));
  return check_signature(receipt);
}

}  // namespace candor
