#include "formats/torch/tensor_pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "formats/quote.h"

namespace candor::formats::torch {
namespace {

constexpr size_t kMostValues = size_t{1} << 16;

using Index = size_t;  // of a value
struct None {};
struct Name {
  std::string_view text;  // "torch FloatStorage"
};
struct Tuple {
  std::vector<Index> items;
};
struct Dict {
  std::vector<std::pair<Index, Index>> items;
};
struct Storage {
  DType dtype;
  std::string_view key;
};
using Value = std::variant<None, bool, int64_t, std::string_view, Name, Tuple, Dict, Storage, PickledTensor>;

constexpr std::string_view kDict = "collections OrderedDict";
constexpr std::string_view kTensor = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view kParameter = "torch._utils _rebuild_parameter";
constexpr std::pair<std::string_view, DType> kStorages[] = {{"torch FloatStorage", DType::kF32},
                                                            {"torch HalfStorage", DType::kF16},
                                                            {"torch BFloat16Storage", DType::kBF16},
                                                            {"torch DoubleStorage", DType::kF64}};

const DType* storage_type(std::string_view name) {
  const auto* row = std::ranges::find(kStorages, name, [](const auto& storage) { return storage.first; });
  return row == std::end(kStorages) ? nullptr : &row->second;
}

class Unpickler {
 public:
  Unpickler(std::string_view pickle, std::string_view file_name) : text_(pickle), name_(file_name) {}

  Result<std::vector<PickledTensor>> read() {
    while (!is_over_) {
      CANDOR_ASSIGN(const std::string_view op, take(1));
      CANDOR_TRY(step(op.front()));
      if (values_.size() > kMostValues) return bad("holds too many values for a list of tensors");
    }
    return tensors();
  }

 private:
  Error bad(std::string_view reason) const {
    return fail(ErrorKind::kUnsupported, fmt::format("{}: the pickle in it {}", name_, reason));
  }
  Error broken() const { return bad(fmt::format("is broken at byte {}: download the file again", at_)); }

  Result<std::string_view> take(size_t n) {
    if (n > text_.size() - at_) return broken();
    at_ += n;
    return text_.substr(at_ - n, n);
  }
  template <typename T>
  Result<T> number() {
    CANDOR_ASSIGN(const std::string_view bytes, take(sizeof(T)));
    T value{};
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }
  Result<std::string_view> line() {
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) return broken();
    CANDOR_ASSIGN(const std::string_view text, take(end + 1 - at_));
    return text.substr(0, text.size() - 1);
  }

  Result<void> push(Value value) {
    values_.push_back(std::move(value));
    stack_.push_back(values_.size() - 1);
    return {};
  }
  Result<Index> pop() {
    const size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) return broken();
    const Index index = stack_.back();
    stack_.pop_back();
    return index;
  }
  // What lies above the last mark.
  Result<std::vector<Index>> pop_to_mark() {
    if (marks_.empty()) return broken();
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Index> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  template <typename T>
  const T* as(Index index) const {
    return std::get_if<T>(&values_[index]);
  }

  Result<void> step(char op);
  Result<void> push_leaf(char op);
  Result<void> use_memo(char op);
  template <typename T>
  Result<void> push_number();
  Result<void> push_integer(char op);
  Result<void> push_text();
  Result<void> push_name();
  Result<void> push_tuple(size_t n);
  Result<void> keep(size_t number);
  Result<void> recall(size_t number);
  Result<void> set_items(std::vector<Index> items);
  Result<void> push_storage();
  Result<void> reduce();
  Result<void> push_tensor(const Tuple& arguments);
  Result<Shape> shape_of(const Tuple& sizes, const Tuple& strides) const;
  Result<std::vector<PickledTensor>> tensors() const;

  std::string_view text_;
  std::string_view name_;
  size_t at_ = 0;
  bool is_over_ = false;
  std::deque<Value> values_;
  std::vector<Index> stack_;
  std::vector<size_t> marks_;  // lengths of the stack
  std::unordered_map<size_t, Index> kept_;
};

// Of Python's pickletools, protocol 2, those that a state_dict is made of.
Result<void> Unpickler::step(char op) {
  switch (op) {
    case '.':
      is_over_ = true;
      return {};
    case '(':
      marks_.push_back(stack_.size());
      return {};
    case '\x85':
    case '\x86':
    case '\x87':
      return push_tuple(static_cast<size_t>(static_cast<unsigned char>(op) - 0x84u));
    case 't': {
      CANDOR_ASSIGN(std::vector<Index> items, pop_to_mark());
      return push(Tuple{std::move(items)});
    }
    case 's': {
      CANDOR_ASSIGN(const Index value, pop());
      CANDOR_ASSIGN(const Index key, pop());
      return set_items({key, value});
    }
    case 'u': {
      CANDOR_ASSIGN(std::vector<Index> items, pop_to_mark());
      return set_items(std::move(items));
    }
    case 'Q':
      return push_storage();
    case 'R':
      return reduce();
    case 'b': {  // what a dict says of itself besides its items
      CANDOR_ASSIGN([[maybe_unused]] const Index state, pop());
      return {};
    }
    case 'q':
    case 'r':
    case 'h':
    case 'j':
      return use_memo(op);
    default:
      return push_leaf(op);
  }
}

Result<void> Unpickler::push_leaf(char op) {
  switch (op) {
    case '\x80': {  // the protocol's number
      CANDOR_ASSIGN([[maybe_unused]] const std::string_view protocol, take(1));
      return {};
    }
    case 'N':
      return push(None{});
    case '\x88':
    case '\x89':
      return push(op == '\x88');
    case 'K':
    case 'M':
    case 'J':
    case '\x8a':
      return push_integer(op);
    case 'X':
      return push_text();
    case 'c':
      return push_name();
    case ')':
      return push(Tuple{});
    case '}':
      return push(Dict{});
    default:
      return bad(fmt::format("holds more than tensors (operation {:#04x})", static_cast<unsigned char>(op)));
  }
}

Result<void> Unpickler::use_memo(char op) {
  const bool is_short = op == 'q' || op == 'h';
  size_t place = 0;
  if (is_short) {
    CANDOR_ASSIGN(place, number<uint8_t>());
  } else {
    CANDOR_ASSIGN(place, number<uint32_t>());
  }
  return op == 'q' || op == 'r' ? keep(place) : recall(place);
}

template <typename T>
Result<void> Unpickler::push_number() {
  CANDOR_ASSIGN(const T value, number<T>());
  return push(int64_t{value});
}

Result<void> Unpickler::push_integer(char op) {
  if (op == 'K') return push_number<uint8_t>();
  if (op == 'M') return push_number<uint16_t>();
  if (op == 'J') return push_number<int32_t>();
  CANDOR_ASSIGN(const uint8_t n_bytes, number<uint8_t>());
  CANDOR_ASSIGN(const std::string_view bytes, take(n_bytes));
  int64_t value = 0;
  if (bytes.size() >= sizeof(value)) return bad("holds a number that is too large");
  std::memcpy(&value, bytes.data(), bytes.size());
  return push(value);
}

Result<void> Unpickler::push_text() {
  CANDOR_ASSIGN(const uint32_t n_bytes, number<uint32_t>());
  CANDOR_ASSIGN(const std::string_view text, take(n_bytes));
  return push(text);
}

Result<void> Unpickler::push_name() {
  const size_t begin = at_;
  CANDOR_ASSIGN(const std::string_view module, line());
  CANDOR_ASSIGN(const std::string_view member, line());
  const std::string name = fmt::format("{} {}", module, member);
  for (const std::string_view known : {kDict, kTensor, kParameter}) {
    if (name == known) return push(Name{known});
  }
  if (storage_type(name) != nullptr) {
    return push(Name{std::ranges::find(kStorages, name, [](const auto& row) { return row.first; })->first});
  }
  const std::string_view global = text_.substr(begin, module.size() + 1 + member.size());
  return bad(
      fmt::format("names {}, and only tensors of F32, F16, BF16 and F64 are read: nothing is run", in_quotes(global)));
}

Result<void> Unpickler::push_tuple(size_t n) {
  Tuple tuple;
  for (size_t i = 0; i < n; ++i) {
    CANDOR_ASSIGN(const Index item, pop());
    tuple.items.insert(tuple.items.begin(), item);
  }
  return push(std::move(tuple));
}

Result<void> Unpickler::keep(size_t number) {
  CANDOR_ASSIGN(const Index index, pop());
  stack_.push_back(index);
  kept_[number] = index;
  return {};
}

Result<void> Unpickler::recall(size_t number) {
  const auto at = kept_.find(number);
  if (at == kept_.end()) return broken();
  stack_.push_back(at->second);
  if (stack_.size() > kMostValues) return bad("holds too many values for a list of tensors");
  return {};
}

Result<void> Unpickler::set_items(std::vector<Index> items) {
  CANDOR_ASSIGN(const Index index, pop());
  auto* dict = std::get_if<Dict>(&values_[index]);
  if (dict == nullptr || items.size() % 2 != 0) return broken();
  for (size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
  if (dict->items.size() > kMostValues) return bad("holds too many values for a list of tensors");
  stack_.push_back(index);
  return {};
}

// ("storage", its type, its file, a device, elements)
Result<void> Unpickler::push_storage() {
  CANDOR_ASSIGN(const Index index, pop());
  const auto* parts = as<Tuple>(index);
  if (parts == nullptr || parts->items.size() != 5) return broken();
  const auto* type = as<Name>(parts->items[1]);
  const auto* key = as<std::string_view>(parts->items[2]);
  const DType* dtype = type == nullptr ? nullptr : storage_type(type->text);
  if (dtype == nullptr || key == nullptr) return broken();
  return push(Storage{*dtype, *key});
}

Result<void> Unpickler::reduce() {
  CANDOR_ASSIGN(const Index arguments, pop());
  CANDOR_ASSIGN(const Index called, pop());
  const auto* name = as<Name>(called);
  const auto* tuple = as<Tuple>(arguments);
  if (name == nullptr || tuple == nullptr) return broken();
  if (name->text == kDict && tuple->items.empty()) return push(Dict{});
  if (name->text == kTensor) return push_tensor(*tuple);
  if (name->text != kParameter || tuple->items.empty() || as<PickledTensor>(tuple->items[0]) == nullptr)
    return broken();
  stack_.push_back(tuple->items[0]);
  return {};
}

// (storage, offset, sizes, strides, ...)
Result<void> Unpickler::push_tensor(const Tuple& arguments) {
  if (arguments.items.size() < 4) return broken();
  const auto* storage = as<Storage>(arguments.items[0]);
  const auto* offset = as<int64_t>(arguments.items[1]);
  const auto* sizes = as<Tuple>(arguments.items[2]);
  const auto* strides = as<Tuple>(arguments.items[3]);
  if (storage == nullptr || offset == nullptr || *offset < 0 || sizes == nullptr || strides == nullptr) return broken();
  CANDOR_ASSIGN(const Shape shape, shape_of(*sizes, *strides));
  return push(PickledTensor{{}, storage->dtype, storage->key, *offset, shape});
}

Result<Shape> Unpickler::shape_of(const Tuple& sizes, const Tuple& strides) const {
  if (sizes.items.size() > kMaxDims || sizes.items.size() != strides.items.size()) {
    return bad(fmt::format("holds a tensor of {} dimensions, expected at most {}", sizes.items.size(), kMaxDims));
  }
  Shape shape{static_cast<int32_t>(sizes.items.size()), {}};
  int64_t step = 1;
  for (size_t i = sizes.items.size(); i-- > 0;) {
    const auto* size = as<int64_t>(sizes.items[i]);
    const auto* stride = as<int64_t>(strides.items[i]);
    if (size == nullptr || stride == nullptr || *size < 0) return broken();
    if (*size > 1 && *stride != step) return bad("holds a tensor that is not stored row by row: save it contiguous");
    shape.dims[i] = *size;
    const auto next = checked_mul(step, std::max<int64_t>(*size, 1));
    if (!next) return broken();
    step = *next;
  }
  return shape;
}

Result<std::vector<PickledTensor>> Unpickler::tensors() const {
  const auto* dict = stack_.size() == 1 ? as<Dict>(stack_.front()) : nullptr;
  if (dict == nullptr) return bad("is no dict of tensors (a state_dict)");
  std::vector<PickledTensor> result;
  for (const auto& [key, value] : dict->items) {
    const auto* name = as<std::string_view>(key);
    const auto* tensor = as<PickledTensor>(value);
    if (name == nullptr || tensor == nullptr) return bad("is no dict of tensors (a state_dict)");
    result.emplace_back(*tensor).name = *name;
  }
  return result;
}

}  // namespace

Result<std::vector<PickledTensor>> read_pickle(std::string_view pickle, std::string_view file_name) {
  return Unpickler(pickle, file_name).read();
}

}  // namespace candor::formats::torch
