#include "engine/errors.h"

namespace candor::engine {
namespace {

EngineError::Kind kind_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidInput:
      return EngineError::Kind::kInvalidInput;
    case ErrorKind::kNotFound:
      return EngineError::Kind::kNotFound;
    case ErrorKind::kUnsupported:
      return EngineError::Kind::kUnsupported;
    case ErrorKind::kContextLength:
      return EngineError::Kind::kContextLength;
    case ErrorKind::kOverloaded:
      return EngineError::Kind::kOverloaded;
    case ErrorKind::kBusy:
      return EngineError::Kind::kBusy;
    case ErrorKind::kOutOfMemory:
      return EngineError::Kind::kOutOfMemory;
    case ErrorKind::kIo:
      return EngineError::Kind::kIo;
    case ErrorKind::kCancelled:
      return EngineError::Kind::kCancelled;
    case ErrorKind::kInternal:
      return EngineError::Kind::kInternal;
  }
  return EngineError::Kind::kInternal;
}

}  // namespace

EngineError to_public(Error error, std::string param) {
  return EngineError{kind_of(error.kind), std::move(error.message), std::move(param)};
}

}  // namespace candor::engine
