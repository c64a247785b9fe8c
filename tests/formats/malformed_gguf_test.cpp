// Every way in which a GGUF header can lie, each at twenty seeded places: one line with the file, the place and the
// reason; no signal, no hang, and no allocation sized by the lie.

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "formats/gguf/gguf_format.h"
#include "formats/gguf/gguf_reader.h"
#include "support/mutate.h"
#include "support/raw_gguf.h"

namespace candor::formats {
namespace {

using testing::gguf_array;
using testing::gguf_entry;
using testing::gguf_text;
using testing::le_bytes;
using testing::RawGguf;
using testing::RawTensor;
using testing::SplitMix;

constexpr int kSeeds = 20;
constexpr size_t kMemoryBytes = size_t{512} << 20;
constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

std::string numbered(std::string prefix, uint64_t n) {
  return prefix.append(std::to_string(n));
}

// A valid file: 1 to 6 entries of all kinds and 2 to 5 tensors.
RawGguf valid_file(SplitMix& rng) {
  RawGguf file;
  const uint64_t n_entries = 1 + rng.below(6);
  for (uint64_t i = 0; i < n_entries; ++i) {
    const std::string key = numbered("test.key", i);
    switch (rng.below(4)) {
      case 0:
        file.entries.push_back(gguf_entry(key, 4, le_bytes<uint32_t>(7)));
        break;
      case 1:
        file.entries.push_back(gguf_entry(key, 8, gguf_text("a string")));
        break;
      case 2:
        file.entries.push_back(gguf_entry(key, 9, gguf_array(5, 3, std::string(12, '\1'))));
        break;
      default:
        file.entries.push_back(gguf_entry(key, 9, gguf_array(8, 2, gguf_text("x") + gguf_text(""))));
        break;
    }
  }
  const uint64_t n_tensors = 2 + rng.below(4);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    const uint64_t rows = 1 + rng.below(4);
    file.tensors.push_back({numbered("blk.", i), {32, rows}, 0, file.data_bytes});
    file.data_bytes += 128 * rows;
  }
  return file;
}

std::string& any_entry(RawGguf& file, SplitMix& rng) {
  return file.entries[rng.below(file.entries.size())];
}
RawTensor& any_tensor(RawGguf& file, SplitMix& rng) {
  return file.tensors[rng.below(file.tensors.size())];
}
RawTensor& last_tensor(RawGguf& file, SplitMix&) {
  return file.tensors.back();
}
uint64_t huge(SplitMix& rng) {
  return std::vector<uint64_t>{kHuge, kHuge - 7, uint64_t{1} << 63, uint64_t{1} << 60, uint64_t{1} << 32}[rng.below(5)];
}

struct Malformed {
  std::string kind;
  std::function<void(RawGguf&, SplitMix&)> bend;
  std::string reason;  // part of the message
  ErrorKind error = ErrorKind::kInvalidInput;
};

std::vector<Malformed> header_kinds() {
  return {
      {"bad magic", [](RawGguf& f, SplitMix& r) { f.magic[r.below(4)] ^= static_cast<char>(1 + r.below(255)); },
       "magic"},
      {"version 0", [](RawGguf& f, SplitMix&) { f.version = 0; }, "version 0 is not", ErrorKind::kUnsupported},
      {"version 1", [](RawGguf& f, SplitMix&) { f.version = 1; }, "version 1 is not", ErrorKind::kUnsupported},
      {"future version", [](RawGguf& f, SplitMix& r) { f.version = 4 + static_cast<uint32_t>(r.below(60000)); },
       "is not supported", ErrorKind::kUnsupported},
      {"big-endian", [](RawGguf& f, SplitMix& r) { f.version = r.below(2) == 0 ? 0x03000000u : 0x02000000u; },
       "big-endian", ErrorKind::kUnsupported},
      {"huge tensor count", [](RawGguf& f, SplitMix& r) { f.n_tensors = huge(r); }, "tensor count"},
      {"huge metadata count", [](RawGguf& f, SplitMix& r) { f.n_entries = huge(r); }, "metadata count"},
      {"one tensor too many",
       [](RawGguf& f, SplitMix&) {
         f.n_tensors = f.tensors.size() + 1;
         f.data_bytes = 0;
       },
       ""},
  };
}

std::vector<Malformed> metadata_kinds() {
  return {
      {"huge key length", [](RawGguf& f, SplitMix& r) { any_entry(f, r).replace(0, 8, le_bytes(huge(r))); }, "remain"},
      {"huge string length",
       [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry("s", 8, le_bytes(huge(r)) + "abc"); },
       "key 's': the string's length"},
      {"huge array count",
       [](RawGguf& f, SplitMix& r) {
         any_entry(f, r) = gguf_entry("a", 9, gguf_array(static_cast<uint32_t>(r.below(9)), huge(r), "abcdefgh"));
       },
       "key 'a': the array says"},
      {"huge length inside an array",
       [](RawGguf& f, SplitMix& r) {
         any_entry(f, r) = gguf_entry("a", 9, gguf_array(8, 2, gguf_text("x") + le_bytes(huge(r))));
       },
       "key 'a': a string's length"},
      {"array of arrays",
       [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry("a", 9, gguf_array(9, 1, gguf_array(0, 1, "x"))); },
       "array of arrays", ErrorKind::kUnsupported},
      {"empty key", [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry("", 4, le_bytes<uint32_t>(1)); },
       "the key is empty"},
      {"key of 65536 bytes",
       [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry(std::string(65536, 'k'), 4, le_bytes<uint32_t>(1)); },
       "at most 65535"},
      {"key that is not UTF-8",
       [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry("bad\xff\xc3", 4, le_bytes<uint32_t>(1)); },
       "'bad\\xff\\xc3' is not UTF-8"},
      {"duplicate key",
       [](RawGguf& f, SplitMix& r) {
         f.entries.push_back(gguf_entry("twice", 4, le_bytes<uint32_t>(1)));
         any_entry(f, r) = gguf_entry("twice", 8, gguf_text("again"));
         f.entries.push_back(gguf_entry("twice", 7, "\1"));
       },
       "key 'twice' appears twice"},
      {"unknown value type",
       [](RawGguf& f, SplitMix& r) {
         any_entry(f, r) = gguf_entry("t", 13 + static_cast<uint32_t>(r.below(1u << 31)), le_bytes<uint64_t>(1));
       },
       "key 't': the value's type", ErrorKind::kUnsupported},
      {"unknown element type",
       [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry("t", 9, gguf_array(13, 1, "x")); },
       "key 't': the array's element type", ErrorKind::kUnsupported},
      {"bool of 2",
       [](RawGguf& f, SplitMix& r) {
         any_entry(f, r) = gguf_entry("b", 7, std::string(1, static_cast<char>(2 + r.below(254))));
       },
       "key 'b': a bool is"},
      {"bool of 2 in an array",
       [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry("b", 9, gguf_array(7, 2, "\1\2")); },
       "key 'b': a bool is 2"},
      {"array element above 2^63",
       [](RawGguf& f, SplitMix& r) { any_entry(f, r) = gguf_entry("u", 9, gguf_array(10, 1, le_bytes(kHuge))); },
       "key 'u': array element 0"},
      {"alignment that is no power of two from 8 on",
       [](RawGguf& f, SplitMix& r) {
         const uint32_t bad[] = {0, 1, 4, 7, 13, 24, 33, 0xffffffffu};
         any_entry(f, r) = gguf_entry("general.alignment", 4, le_bytes(bad[r.below(8)]));
       },
       "key 'general.alignment': the alignment is"},
      {"alignment of a wrong type",
       [](RawGguf& f, SplitMix& r) {
         const std::string values[] = {gguf_entry("general.alignment", 8, gguf_text("32")),
                                       gguf_entry("general.alignment", 10, le_bytes<uint64_t>(32)),
                                       gguf_entry("general.alignment", 9, gguf_array(4, 1, le_bytes<uint32_t>(32))),
                                       gguf_entry("general.alignment", 6, le_bytes(32.0f))};
         any_entry(f, r) = values[r.below(4)];
       },
       "not u32"},
      {"alignment of 2^31, which puts the data outside",
       [](RawGguf& f, SplitMix& r) {
         any_entry(f, r) = gguf_entry("general.alignment", 4, le_bytes(uint32_t{1} << 31));
       },
       ""},
  };
}

std::vector<Malformed> tensor_kinds() {
  return {
      {"name of 64 bytes or more",
       [](RawGguf& f, SplitMix& r) { any_tensor(f, r).name = std::string(64 + r.below(100), 'n'); }, "at most 63"},
      {"empty name", [](RawGguf& f, SplitMix& r) { any_tensor(f, r).name = ""; }, "name is empty"},
      {"name that is not UTF-8", [](RawGguf& f, SplitMix& r) { any_tensor(f, r).name = "w\x80"; }, "is not UTF-8"},
      {"duplicate name", [](RawGguf& f, SplitMix&) { f.tensors[1].name = f.tensors[0].name; }, "appears twice"},
      {"five dimensions",
       [](RawGguf& f, SplitMix& r) {
         any_tensor(f, r).dims = {32, 1, 1, 1, 1 + r.below(3)};
       },
       "5 dimensions"},
      {"dimension 0", [](RawGguf& f, SplitMix& r) { any_tensor(f, r).dims[r.below(2)] = 0; }, "is 0, not positive"},
      {"dimension -1", [](RawGguf& f, SplitMix& r) { any_tensor(f, r).dims[r.below(2)] = kHuge - r.below(5); },
       "not positive"},
      {"element count that overflows",
       [](RawGguf& f, SplitMix& r) {
         any_tensor(f, r).dims = {uint64_t{1} << 32, uint64_t{1} << (31 + r.below(8))};
       },
       "overflows the element count"},
      {"byte count that overflows",
       [](RawGguf& f, SplitMix& r) {
         any_tensor(f, r).dims = {uint64_t{1} << 31, uint64_t{1} << 31};
       },
       "overflows the byte count"},
      {"row that is no multiple of the block",
       [](RawGguf& f, SplitMix& r) {
         RawTensor& tensor = any_tensor(f, r);
         tensor.dims[0] = 33 + r.below(31);
         tensor.type = r.below(2) == 0 ? 2 : 12;
       },
       "not a multiple of"},
      {"unknown tensor type",
       [](RawGguf& f, SplitMix& r) {
         const uint32_t bad[] = {4, 5, 31, 33, 36, 43, 255, 256, 0xffffffffu};
         any_tensor(f, r).type = bad[r.below(9)];
       },
       "is not known; weights may be F32", ErrorKind::kUnsupported},
      {"offset that is not aligned", [](RawGguf& f, SplitMix& r) { any_tensor(f, r).offset += 1 + r.below(31); },
       "not a multiple of the alignment"},
      {"offset outside",
       [](RawGguf& f, SplitMix& r) {
         const uint64_t bad[] = {f.data_bytes, uint64_t{1} << 40, kHuge - 31, (uint64_t{1} << 63)};
         any_tensor(f, r).offset = bad[r.below(4)] / 32 * 32;
       },
       "header needs"},
      {"data of two tensors overlaps",
       [](RawGguf& f, SplitMix& r) { f.tensors[1 + r.below(f.tensors.size() - 1)].offset = 32 * r.below(4); },
       "overlaps"},
      {"one byte of data missing", [](RawGguf& f, SplitMix&) { f.data_bytes -= 1; }, "bytes, header needs"},
      {"a dimension more than the data",
       [](RawGguf& f, SplitMix& r) { last_tensor(f, r).dims[1] += 1 + r.below(1000000); }, "bytes, header needs"},
  };
}

void expect_refused(const Malformed& malformed) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SplitMix rng(seed * 977 + 5);
    RawGguf file = valid_file(rng);
    const std::string name = numbered("bad.gguf.", seed);
    ASSERT_EQ(testing::verdict(gguf::GgufFile::parse(testing::bytes_of(file.bytes()), name)), "ok");
    malformed.bend(file, rng);
    const std::vector<std::byte> bytes = testing::bytes_of(file.bytes());
    const testing::CpuTimeLimit seconds(2);
    const testing::MemoryLimit memory(kMemoryBytes);
    const auto result = gguf::GgufFile::parse(bytes, name);
    ASSERT_FALSE(result) << malformed.kind << ", seed " << seed;
    const std::string& message = result.error().message;
    EXPECT_EQ(result.error().kind, malformed.error) << malformed.kind << ": " << message;
    EXPECT_NE(message.find("'" + name + "': offset "), std::string::npos) << malformed.kind << ": " << message;
    EXPECT_NE(message.find(malformed.reason), std::string::npos) << malformed.kind << ": " << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << malformed.kind;
    EXPECT_LT(message.size(), 500u) << malformed.kind;
  }
}

TEST(malformed_gguf, headers_that_lie_are_refused_with_place_and_reason) {
  for (const Malformed& malformed : header_kinds()) expect_refused(malformed);
}

TEST(malformed_gguf, metadata_that_lies_is_refused_with_place_and_reason) {
  for (const Malformed& malformed : metadata_kinds()) expect_refused(malformed);
}

TEST(malformed_gguf, tensors_that_lie_are_refused_with_place_and_reason) {
  for (const Malformed& malformed : tensor_kinds()) expect_refused(malformed);
}

TEST(malformed_gguf, arrays_of_a_narrower_type_than_expected_are_an_error_or_widened) {
  SplitMix rng(3);
  RawGguf file = valid_file(rng);
  file.entries.push_back(gguf_entry("scores", 9, gguf_array(1, 4, "abcd")));
  file.entries.push_back(gguf_entry("kinds", 9, gguf_array(0, 4, "\1\2\3\xff")));
  const std::vector<std::byte> bytes = testing::bytes_of(file.bytes());
  const auto model = gguf::GgufFile::parse(bytes, "narrow.gguf");
  ASSERT_TRUE(model);
  const auto scores = meta_floats(**model, "scores");
  ASSERT_FALSE(scores);
  EXPECT_EQ(scores.error().message,
            "'narrow.gguf': key 'scores': the type is array of integers, expected array of floats");
  const auto kinds = meta_ints(**model, "kinds");
  ASSERT_TRUE(kinds);
  EXPECT_EQ(**kinds, (std::vector<int64_t>{1, 2, 3, 255}));
}

TEST(malformed_gguf, the_largest_arrays_that_load_stay_below_the_memory_limit) {
  for (const uint64_t above : {uint64_t{0}, uint64_t{1}}) {
    const uint64_t count = gguf::kMaxArrayElements + above;
    RawGguf file;
    file.entries.push_back(gguf_entry("a", 9, gguf_array(8, count, std::string(8 * count, '\0'))));
    std::vector<std::byte> bytes = testing::bytes_of(file.bytes());
    file.entries.clear();
    const testing::MemoryLimit memory(kMemoryBytes);
    const auto model = gguf::GgufFile::parse(bytes, "wide.gguf");
    EXPECT_EQ(model.has_value(), above == 0) << testing::verdict(model);
  }
}

TEST(malformed_gguf, the_memory_limit_of_these_tests_bites) {
#ifdef CANDOR_SANITIZED
  GTEST_SKIP() << "sanitizers reserve address space of their own";
#else
  const testing::MemoryLimit memory(size_t{64} << 20);
  EXPECT_THROW(std::vector<std::byte>(size_t{256} << 20), std::bad_alloc);
#endif
}

TEST(malformed_gguf, keys_chosen_against_hashing_do_not_slow_the_reader) {
  RawGguf file;
  for (uint64_t i = 0; i < gguf::kMaxMetaEntries; ++i) {
    file.entries.push_back(gguf_entry(numbered("k", i), 7, std::string(1, '\0')));
  }
  const std::vector<std::byte> bytes = testing::bytes_of(file.bytes());
  const testing::CpuTimeLimit seconds(2);
  const auto model = gguf::GgufFile::parse(bytes, "many.gguf");
  ASSERT_TRUE(model) << testing::verdict(model);
  EXPECT_NE((*model)->meta("k65535"), nullptr);
  EXPECT_EQ((*model)->meta("k65536"), nullptr);
}

}  // namespace
}  // namespace candor::formats
