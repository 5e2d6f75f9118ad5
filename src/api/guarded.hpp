// What every public call runs in.
#pragma once

#include <new>

#include "api/checks.hpp"
#include "exact/floating_mode.hpp"

namespace isofold::api {

// Runs `call` in the certificates' floating-point mode; exceptions end here.
template <class Call>
Status guarded(Call&& call) {
  const FloatingMode mode;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fault(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace isofold::api
