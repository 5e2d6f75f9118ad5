// What every public call runs in, and how it words what an executor tells.
#pragma once

#include <new>

#include "algorithm/outcome.hpp"
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

// `find` looks for the element that the executor met.
template <class Find>
Status worded(Outcome outcome, Find&& find) {
  if (outcome == Outcome::interrupted) return fault(StatusCode::interrupted, "interrupted by the caller");
  return outcome == Outcome::bad_input ? find() : Status{};
}

inline Status worded(Outcome outcome) {
  return worded(outcome, [] { return Status{}; });
}

}  // namespace isofold::api
